"""Bad times: a full disk, no permission, a failing framework. One clear line, a documented exit code, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts import control_groups, disks
from parts.deadline import DEADLINE_S


@pytest.fixture
def small_disk(toy: Any) -> Iterator[Path]:
    """Mount a file system of half a MiB as home. The work directory is elsewhere."""
    toy.home.mkdir()
    with disks.small_disk(toy.home):
        yield toy.home


def content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_full_disk_at_the_start_is_an_error_and_nothing_is_lost(toy: Any, small_disk: Path) -> None:
    spec = toy.spec(target={"workdir": str(toy.folder / "work")})
    assert toy.llmb("run", spec).returncode == 0
    filler = disks.fill(small_disk)
    before = content(small_disk / "runs")
    done = toy.llmb("run", spec)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("llmb: cannot write the record ")
    assert "No space left on device; nothing was started" in line
    assert content(small_disk / "runs") == before
    assert len(toy.journal("begin")) == 1
    filler.unlink()
    [run] = toy.runs("runs")
    assert run["state"] == "completed"


def test_after_a_disk_filled_up_during_a_run_attach_completes_the_run(toy: Any, small_disk: Path) -> None:
    spec = toy.spec(target={"workdir": str(toy.folder / "work")}, framework={"gate": str(toy.gate), "gate_step": 2})
    running = toy.start("run", spec)
    run_id = toy.wait_for_state("running")
    filler = disks.fill(small_disk)
    before = content(small_disk / "runs")
    toy.gate.touch()
    _, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 2
    line = err.splitlines()[-1]
    assert line.startswith("llmb: cannot write the record ")
    assert "No space left on device" in line
    assert f"llmb attach {run_id}" in line
    assert "Traceback" not in err
    after = content(small_disk / "runs")
    assert all(after[name].startswith(data) for name, data in before.items())
    filler = disks.fill(small_disk)  # again, because llmb removed its file for the recording of the sweep
    again = toy.llmb("attach", "--json")
    assert again.returncode == 2
    assert "No space left on device" in json.loads(again.stdout)["errors"][0]["message"]
    filler.unlink()
    [run] = toy.runs("attach")
    assert run["state"] == "completed"
    assert run["metrics"]["step_time_s"] == 0.5
    assert toy.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]
    assert len(toy.journal("begin")) == 1


@pytest.fixture(params=disks.LIMITS)
def limited_work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a work directory that is soon full, or whose quota is soon exceeded."""
    work = tmp_path / "work"
    work.mkdir()
    with disks.LIMITS[request.param](work):
        yield work


def test_a_full_work_disk_at_the_end_of_a_job_does_not_lose_its_result(toy: Any, limited_work: Path) -> None:
    spec = toy.spec(target={"workdir": str(limited_work)}, framework={"gate": str(toy.gate), "gate_step": 5})
    running = toy.start("run", spec, "--json")
    fill_after_step(5, limited_work, toy)
    [run] = json.loads(running.communicate(timeout=DEADLINE_S)[0])["runs"]
    assert run["state"] == "completed"


def test_a_full_work_disk_is_the_reason_and_not_the_framework(
    toy: Any, limited_work: Path, request: pytest.FixtureRequest
) -> None:
    options = {"gate": str(toy.gate), "gate_step": 2, "end": "exit 1", "end_step": 3}
    running = toy.start("run", toy.spec(target={"workdir": str(limited_work)}, framework=options), "--json")
    fill_after_step(2, limited_work, toy)
    [run] = json.loads(running.communicate(timeout=DEADLINE_S)[0])["runs"]
    assert run["state"] == "failed"
    assert str(limited_work) in run["reason"], disks.describe(limited_work)
    assert request.node.callspec.params["limited_work"] in run["reason"]


def test_nothing_is_recorded_if_nothing_can_be_written_in_the_work_directory(
    toy: Any, limited_work: Path, request: pytest.FixtureRequest
) -> None:
    disks.fill(limited_work)
    done = toy.llmb("run", toy.spec(target={"workdir": str(limited_work)}))
    assert (done.returncode, toy.records) == (4, [])
    [line] = done.stderr.splitlines()
    assert f"cannot write in the work directory {limited_work} on this machine: " in line
    assert request.node.callspec.params["limited_work"] in line


def fill_after_step(step: int, work: Path, toy: Any) -> None:
    """Fill the disk of a run that waits at its gate after this step, and open the gate."""
    toy.wait_for_journal("begin")
    run_id = toy.wait_for_state("running")
    toy.wait(lambda: f"step {step}" in (work / "runs" / run_id / "logs/train.0.0.log").read_text())
    disks.fill(work)
    toy.gate.touch()


# permission


class Ordinary:
    """A user without root's right to ignore permissions."""

    def __init__(self, toy: Any) -> None:
        self._toy = toy
        powers = "-dac_override,-dac_read_search"
        self._prefix = ["setpriv", "--bounding-set", powers, "--inh-caps", powers] if os.geteuid() == 0 else []

    def llmb(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._prefix, *self._toy.command(*arguments)]
        return subprocess.run(command, env=self._toy.env, capture_output=True, text=True, timeout=DEADLINE_S)


@pytest.fixture
def ordinary(toy: Any) -> Ordinary:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root cannot be stopped by permissions here")
    return Ordinary(toy)


def test_a_home_without_write_permission_is_an_error_of_one_line(toy: Any, ordinary: Ordinary) -> None:
    toy.home.mkdir(mode=0o555)
    done = ordinary.llmb("run", "--quiet", toy.spec(target={"workdir": str(toy.folder / "work")}))
    message = f"llmb: cannot write {toy.home}; nothing was started; set LLMB_HOME to use another folder for all records"
    assert (done.returncode, done.stderr) == (2, message + "\n")
    assert toy.journal() == []


@pytest.mark.slow
def test_a_home_that_is_a_file_is_the_error_instead_of_the_work_directory_in_it(toy: Any) -> None:
    toy.home.touch()
    done = toy.llmb("run", "--quiet", toy.spec())
    message = f"llmb: {toy.home} is not a directory; nothing was started; set LLMB_HOME to use another folder"
    assert (done.returncode, done.stderr) == (2, f"{message} for all records\n")
    [line] = [line for line in toy.llmb("doctor").stdout.splitlines() if line.split()[1] == "records"]
    assert line.split(maxsplit=2)[::2] == ["failed", f"{toy.home} is not a directory"]


def test_a_home_without_read_permission_is_an_error_of_one_line(toy: Any, ordinary: Ordinary) -> None:
    (toy.home / "runs").mkdir(parents=True)
    (toy.home / "runs").chmod(0)
    done = ordinary.llmb("runs")
    assert done.returncode == 2
    assert done.stderr.startswith(f"llmb: {toy.home / 'runs'} cannot be read: Permission denied; set LLMB_HOME ")
    assert done.stderr.count("\n") == 1


def test_a_work_directory_without_permission_is_an_error_of_one_line(toy: Any, ordinary: Ordinary) -> None:
    work = toy.folder / "work"
    work.mkdir(mode=0o555)
    spec = toy.spec(target={"workdir": str(work)})
    done = ordinary.llmb("run", spec)
    assert done.returncode == 4
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"llmb: cannot write in the work directory {work}")
    assert f"Permission denied; fix this, or `llmb run {spec} --set target.workdir=/path/to/folder`" in last
    assert "Traceback" not in done.stderr
    assert toy.runs("runs") == []


# the framework


def failed(toy: Any, warning: str = "", **options: Any) -> str:
    done = toy.llmb("run", toy.spec(framework=options, env={"TOY_WARNING": warning}))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return str(done.stdout)


def line_of(text: str, name: str) -> str:
    """Return one row of the printed result, without the terminal's line breaks."""
    rows = text.split(f"\n  {name}", 1)[1].split("\n  ")
    first, *more = rows[0].split("\n") + [row for row in rows[1:] if row.startswith(" ")]
    return " ".join(" ".join([first, *more]).split())


def test_a_framework_that_exits_at_once(toy: Any) -> None:
    out = failed(toy, end="exit 3", end_step=0)
    assert line_of(out, "cause") == "phase train, rank 0: exit code 3 (after 0 of 5 steps)"
    assert line_of(out, "log") == "toy: giving up"


def test_a_framework_that_is_killed_whatever_it_warned_of_before_its_first_step(toy: Any) -> None:
    out = failed(toy, warning="UserWarning: [Errno 12] Cannot allocate memory", end="kill 9", end_step=2)
    assert "phase train, rank 0: killed by signal 9 (exit code 137) (after 2 of 5 steps)" in line_of(out, "cause")
    assert "toy step 2 time 0.5" in line_of(out, "log")


def test_a_framework_that_crashes(toy: Any) -> None:
    out = failed(toy, end="kill 11", end_step=1)
    assert "killed by signal 11" in line_of(out, "cause")


@pytest.mark.real
def test_a_framework_that_runs_out_of_memory(toy: Any) -> None:
    """The kernel's own killer acts."""
    spec = toy.spec(framework={"end": "memory", "end_step": 3})
    with control_groups.little_memory() as group:
        command = control_groups.inside(group, toy.command("run", spec))
        done = subprocess.run(command, env=toy.env, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1, done.stderr
    assert line_of(done.stdout, "cause").startswith("out of memory: phase train, rank 0: killed by signal 9")
    assert "toy step 3" in line_of(done.stdout, "log")
