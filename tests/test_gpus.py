"""The assignment of GPUs: no GPU is assigned to two runs, whichever user starts them and whatever is killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from parts.toy import await_run, job_script_of, supervisor_of

FOUR = {"machine_gpus": 4, "max_parallel": 3}


def spec(toy: Any, name: str, gpus: int, gate: str = "", **target: Any) -> str:
    framework = {"needs_gpus": True, "dump": True, "gate": gate}
    return str(toy.spec(name, workload={"gpus": gpus}, framework=framework, target=FOUR | target))


def start(toy: Any, name: str, gpus: int, **target: Any) -> Any:
    return toy.start("run", spec(toy, name, gpus, str(toy.gate), **target), "--json")


def visible(work: Path) -> list[str]:
    """Return the GPUs that a run's ranks see, in order."""
    lines = (work / "env.0").read_text().split("\0")
    return next(line for line in lines if line.startswith("CUDA_VISIBLE_DEVICES=")).partition("=")[2].split(",")


@pytest.mark.slow
def test_concurrent_runs_have_their_own_gpus(toy: Any) -> None:
    running = [start(toy, str(number), 2) for number in range(2)]
    toy.wait_for_journal("begin", 4)
    seen = [visible(toy.work(record.name)) for record in toy.records]
    assert sorted(map(len, seen)) == [2, 2]
    assert set().union(*seen) == {"0", "1", "2", "3"}
    third = start(toy, "third", 1)
    toy.wait(lambda: len(toy.records) == 3)
    [waiting] = [each for each in toy.records if not (toy.work(each.name) / "env.0").exists()]
    toy.wait(lambda: (toy.work(waiting.name) / "started").exists())
    assert len(toy.journal("begin")) == 4  # there is a place for it, but no GPU
    toy.gate.touch()
    assert {await_run(each)["state"] for each in (*running, third)} == {"completed"}


@pytest.mark.slow
def test_ranks_have_the_gpus_in_the_order_of_the_machine(toy: Any) -> None:
    """Local rank 0 runs on the first GPU, next to its cores and network card, whichever GPU was free first."""
    toy.gate.touch()
    with locked(toy, 2):
        with locked(toy, 0):
            running = start(toy, "first", 2, machine_gpus=3)
            toy.wait(lambda: toy.records)
            work = toy.work(toy.records[0].name)
            toy.wait(lambda: (work / "queued").exists() and "free GPUs" in (work / "queued").read_text())
        assert await_run(running)["state"] == "completed"
    assert visible(work) == ["0", "1"]


@contextmanager
def locked(toy: Any, gpu: int) -> Iterator[None]:
    """Hold the lock of a GPU, like a run that uses it."""
    command = ["flock", str(toy.folder / f"machine.lock.gpu-{gpu}"), "sh", "-c", "echo locked; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"locked\n"
        yield


@pytest.mark.slow
def test_the_next_run_ends_the_processes_of_a_killed_one_on_its_gpus(toy: Any) -> None:
    """No process attaches, and neither a supervisor nor a script is left that could end the ranks."""
    first = start(toy, "first", 4)
    toy.wait_for_journal("begin", 4)
    run_id = toy.wait_for_state("running")
    supervisor, script = supervisor_of(toy.work(run_id)), job_script_of(toy.work(run_id))
    first.kill()
    first.communicate()
    for pid in (supervisor, script):
        os.kill(pid, signal.SIGKILL)
    second = toy.start("run", spec(toy, "second", 4), "--json")
    assert await_run(second)["state"] == "completed"
    assert len(toy.journal("begin")) == 8
    assert len(toy.journal("end")) == 4
    [lost] = toy.runs("attach", run_id)
    assert lost["state"] == "lost"


def waiting_for(lock: Path) -> str | None:
    """Return the process that waits for a lock now. Each waits for some seconds."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            opened = [str(each.readlink()) for each in (process / "fd").iterdir()]
            if str(lock) in opened and (process / "cmdline").read_bytes().startswith(b"flock\0-w"):
                return process.name
        except OSError:
            continue  # it ended by itself
    return None


@pytest.mark.slow
def test_llmb_waits_for_a_run_with_invisible_processes(toy: Any) -> None:
    """Its supervisor runs in another container with other process ids, so that it only seems to have ended."""
    elsewhere = toy.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "started").write_text(f"1 1 {Path('/proc/sys/kernel/random/boot_id').read_text()}")
    lock = toy.folder / "machine.lock"
    lock.write_text(f"{elsewhere}\n")
    holder = subprocess.Popen(["flock", str(lock), "cat"], stdin=subprocess.PIPE)
    running = start(toy, "first", 1, max_parallel=1)
    asked = toy.wait(lambda: waiting_for(lock))
    toy.wait(lambda: waiting_for(lock) not in (None, asked))
    holder.communicate()
    toy.gate.touch()
    assert await_run(running)["state"] == "completed"
    assert [each.name for each in elsewhere.iterdir()] == ["started"]


def test_other_users_of_the_machine_take_turns_by_the_same_locks(toy: Any) -> None:
    assert toy.llmb("run", spec(toy, "toy", 1, max_parallel=1)).returncode == 0
    locks = list(toy.folder.glob("machine.lock*"))
    assert {lock.name for lock in locks} >= {"machine.lock", "machine.lock.queue", "machine.lock.gpu-0"}
    assert {stat.S_IMODE(lock.stat().st_mode) for lock in locks} == {0o666}


@pytest.mark.slow
def test_at_most_max_parallel_runs_are_concurrent(toy: Any) -> None:
    running = [start(toy, str(number), 1, max_parallel=2) for number in range(3)]
    toy.wait_for_journal("begin", 2)
    toy.wait(lambda: len([each for each in toy.records if (toy.work(each.name) / "started").exists()]) == 3)
    assert len(toy.journal("begin")) == 2
    toy.gate.touch()
    assert {await_run(each)["state"] for each in running} == {"completed"}
    assert len(toy.journal("begin")) == 3


def test_more_gpus_than_the_machine_has_are_rejected_before_anything_starts(toy: Any) -> None:
    done = toy.llmb("run", spec(toy, "toy", 4, machine_gpus=2))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "workload.gpus: the job needs 4 GPUs, but this machine has 2; expected at most 2" in line
    assert toy.records == []
    assert not (toy.home / "work").exists()


def test_a_machine_without_gpus_rejects_a_run_before_anything_starts(toy: Any, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/nvidia-smi"
    fake.write_text('#!/bin/sh\necho "No devices were found"\nexit 6\n')
    fake.chmod(0o755)
    file = toy.spec(framework={"needs_gpus": True})
    done = toy.llmb("run", file, env={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert done.returncode == 2
    assert "this machine has none (nvidia-smi fails: No devices were found" in done.stderr
    assert toy.records == []
    assert toy.llmb("run", file, "--dry-run").returncode == 0  # which does not contact the target
