"""Runs of the toy framework in containers of a real Docker engine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from parts import disks
from parts.toy import await_run, job_script_of, supervisor_of

pytestmark = pytest.mark.real

TOKEN = "very-secret-7d1f9c"


def start_at_gate(toy: Any, **tables: dict[str, Any]) -> tuple[Any, str]:
    """Start a run whose ranks wait in their container. Return the process and the run id."""
    framework = {"gate": str(toy.gate)} | tables.pop("framework", {})
    running = toy.start("run", toy.spec(framework=framework, **tables), "--json")
    toy.wait_for_journal("begin")
    return running, toy.wait_for_state("running")


# the same as without a container


def test_a_run_in_an_image_has_the_same_record_as_one_without(toy_docker: Any) -> None:
    run = toy_docker.run(workload={"gpus": 2}, framework={"warm_up": True, "output": True})
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert run["metrics"]["step_time_s"] == 0.5
    record = Path(run["directory"])
    assert toy_docker.steps_of(record) == [1, 2, 3, 4, 5]
    assert {log.name for log in (record / "logs").iterdir()} == {"warm-up.0.0.log", "train.0.0.log", "train.0.1.log"}
    order = [(line.split()[0], line.split()[2]) for line in toy_docker.journal()]
    assert order[:2] == [("begin", "warm-up.0"), ("end", "warm-up.0")]
    assert sorted(order[2:]) == [("begin", "train.0"), ("begin", "train.1"), ("end", "train.0"), ("end", "train.1")]


def test_ranks_have_their_variables_and_the_environment_of_the_image(toy_docker: Any) -> None:
    run = toy_docker.run(workload={"gpus": 2}, framework={"dump": True}, env={"ODD": 'it\'s $(touch pwned)\n"two"'})
    for rank in "01":
        lines = (toy_docker.work(run["run_id"]) / f"env.{rank}").read_text().split("\0")
        expected = {
            *(f"{prefix}{name}={rank}" for prefix in ("", "LLMB_") for name in ("RANK", "LOCAL_RANK")),
            "WORLD_SIZE=2",
            "LLMB_MASTER_ADDR=127.0.0.1",
            f"LLMB_JOB_ID={run['run_id']}",
            'ODD=it\'s $(touch pwned)\n"two"',
            "PYTHONPATH=/image",
        }
        assert expected <= set(lines)
    recorded = tomllib.loads((Path(run["directory"]) / "run.toml").read_text())["provenance"]["env"]
    assert (recorded["RANK"], recorded["PYTHONPATH"]) == ("0", "/image")


def test_the_container_is_named_and_labelled_and_runs_an_init(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker)
    [about] = json.loads(docker("inspect", f"llmb-{run_id}-train"))
    assert about["Config"]["Labels"]["llmb.run"] == run_id
    assert about["HostConfig"]["Init"] is True
    assert about["HostConfig"]["IpcMode"] == "host"
    toy_docker.gate.touch()
    assert await_run(running)["state"] == "completed"


@pytest.mark.slow
def test_the_engine_is_reported_only_if_llmb_chose_it(toy_docker: Any) -> None:
    note = "images run in docker"
    assert note in toy_docker.llmb("run", toy_docker.spec()).stderr
    assert note not in toy_docker.llmb("run", toy_docker.spec(target={"runtime": "docker"})).stderr


def test_a_mount_can_be_read_only(toy_docker: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a, b"
    folder.mkdir()
    gate = {"gate": "/data/gate", "gate_step": 1}
    (folder / "gate").touch()
    assert toy_docker.run(framework=gate, mounts={str(folder): "/data:ro"})["state"] == "completed"


# how runs end


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        ({"end": "exit 3", "end_step": 2, "end_rank": 1}, "phase train, rank 1: exit code 3"),
        ({"end": "kill 9", "end_step": 2}, "phase train, rank 0: killed by signal 9 (exit code 137)"),
        ({"end": "kill 11", "end_step": 2}, "phase train, rank 0: killed by signal 11 (exit code 139)"),
    ],
)
def test_the_cause_names_the_failed_rank(toy_docker: Any, behaviour: dict[str, Any], cause: str) -> None:
    run = toy_docker.run(framework={"gate": str(toy_docker.gate), "gate_step": 3, **behaviour}, workload={"gpus": 2})
    assert run["state"] == "failed"
    assert run["failure"]["cause"].startswith(cause)


def test_out_of_memory_is_not_just_a_kill(toy_docker: Any) -> None:
    target = {"container": {"ulimits": {}, "memory_gb": 0.05}}
    run = toy_docker.run(framework={"end": "memory", "end_step": 2}, target=target)
    assert run["state"] == "failed"
    killed = "phase train, rank 0: killed by signal 9 (exit code 137); the kernel killed a process, because"
    assert run["failure"]["cause"].startswith(f"{killed} the container was out of memory (after ")
    assert "`memory_gb` in [target.container]" in run["failure"]["remedy"]


def test_a_container_removed_by_another_process_is_reported(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker)
    docker("rm", "--force", "--volumes", f"llmb-{run_id}-train")
    run = await_run(running)
    assert run["state"] == "failed"
    assert f"its container llmb-{run_id}-train was removed by another process" in run["failure"]["cause"]


def test_a_full_disk_ends_the_run(toy_docker: Any, small: Path) -> None:
    end = {"end": "exit 3", "end_step": 2, "gate_step": 2}
    running, _ = start_at_gate(toy_docker, framework=end, target=on_disk(small))
    disks.fill(small)
    toy_docker.gate.touch()
    run = await_run(running)
    assert run["state"] == "failed"
    assert "No space left on device" in run["failure"]["cause"]


def test_a_phase_that_cannot_write_its_end_does_not_go_on(toy_docker: Any, small: Path) -> None:
    running, _ = start_at_gate(toy_docker, target=on_disk(small))
    with suppress(OSError):
        for number in range(100):
            (small / str(number)).touch()
    toy_docker.gate.touch()
    run = await_run(running)
    assert run["state"] == "completed"
    [note] = run["notes"]
    assert "finished: No space left on device" in note


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of one megabyte and 100 files."""
    (tmp_path / "disk").mkdir()
    with disks.small_disk(tmp_path / "disk", "1m,nr_inodes=100") as folder:
        yield folder


def on_disk(disk: Path) -> dict[str, Any]:
    return {"workdir": str(disk), "container": {"ulimits": {}}}


def test_the_time_limit_ends_the_container(toy_docker: Any, pass_hour: Callable[[str], None]) -> None:
    pass_hour(f"[ -e {toy_docker.journal_file} ]")
    run = toy_docker.run(framework={"gate": str(toy_docker.gate)}, workload={"time_limit": "1h"})
    assert run["state"] == "timeout"


@pytest.mark.parametrize("ignore_term", [False, True])
def test_cancel_stops_the_container(toy_docker: Any, docker: Any, ignore_term: bool) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"ignore_term": ignore_term})
    [cancelled] = toy_docker.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert await_run(running) == cancelled
    assert docker.containers == []


# kills


def test_another_llmb_resumes_the_run_of_a_killed_one(toy_docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2})
    running.kill()
    running.communicate()
    toy_docker.gate.touch()
    [run] = toy_docker.runs("attach", run_id)
    assert run["state"] == "completed"
    assert toy_docker.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("victim", ["the job's script", "its supervisor"])
def test_a_killed_job_leaves_no_container_behind(toy_docker: Any, docker: Any, victim: str) -> None:
    running, run_id = start_at_gate(toy_docker)
    work = toy_docker.work(run_id)
    os.kill(job_script_of(work) if victim == "the job's script" else supervisor_of(work), signal.SIGKILL)
    assert await_run(running)["state"] in ("failed", "lost")
    assert docker.containers == []


def test_a_killed_docker_client_does_not_affect_the_run(toy_docker: Any, docker: Any) -> None:
    """The Docker client only waits. The job starts another one, and the run can be cancelled."""
    running, run_id = start_at_gate(toy_docker)
    find_client = ["pgrep", "-f", f"docker wait llmb-{run_id}"]
    client = toy_docker.wait(lambda: subprocess.run(find_client, capture_output=True, text=True).stdout)
    os.kill(int(client), signal.SIGKILL)
    [cancelled] = toy_docker.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert await_run(running) == cancelled
    assert docker.containers == []


def test_the_next_job_removes_the_container_of_a_killed_one(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker)
    work = toy_docker.work(run_id)
    supervisor, script = supervisor_of(work), job_script_of(work)
    running.kill()
    running.communicate()
    for pid in (supervisor, script):
        os.kill(pid, signal.SIGKILL)
    assert docker.containers == [f"llmb-{run_id}-train"]
    second = toy_docker.run()
    assert second["state"] == "completed"
    assert docker.containers == []
    [lost] = toy_docker.runs("attach", run_id)
    assert lost["state"] == "lost"


def test_the_run_continues_if_the_daemon_dies(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2, "warm_up": True})
    toy_docker.wait_for_journal("begin", 2)
    docker.kill()
    log = toy_docker.work(run_id) / "out.log"
    toy_docker.wait(lambda: "docker does not respond" in log.read_text())
    docker.start()
    toy_docker.gate.touch()
    run = await_run(running)
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert toy_docker.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]
    assert len(toy_docker.journal("begin")) == 2


def test_a_daemon_restart_that_stops_containers_is_reported_with_a_remedy(
    toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2})
    restart_without_containers(toy_docker, docker, monkeypatch, run_id)
    assert_ended_by_restart(toy_docker, await_run(running))


def test_a_daemon_that_dies_while_it_starts_the_container_has_the_same_remedy(
    toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for the client of Docker returns from ``docker run`` only after the daemon has died."""
    fake = tmp_path / "bin/docker"
    fake.parent.mkdir()
    real = shutil.which("docker")
    wait = f"while {real} version; do sleep 0.02; done"
    fake.write_text(f'#!/bin/bash\n[ "$1" != run ] || {{ {real} "$@"; {wait}; exit 125; }}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2})
    restart_without_containers(toy_docker, docker, monkeypatch, run_id)
    assert_ended_by_restart(toy_docker, await_run(running))


def restart_without_containers(toy: Any, docker: Any, monkeypatch: pytest.MonkeyPatch, run_id: str) -> None:
    """Kill the daemon, and start it as one that ends its containers."""
    docker.kill()
    toy.wait(lambda: "docker does not respond" in (toy.work(run_id) / "out.log").read_text())
    monkeypatch.setattr(docker, "live_restore", False)
    docker.start()


def assert_ended_by_restart(toy: Any, run: dict[str, Any]) -> None:
    assert run["state"] == "failed"
    assert 'set "live-restore": true in its daemon.json to keep containers running' in run["failure"]["cause"]
    assert toy.steps_of(Path(run["directory"])) == [1, 2]


# secrets


@pytest.mark.smoke
def test_a_secret_reaches_the_job_only(toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    running, run_id = start_at_gate(toy_docker, framework={"secrets": ["TOY_TOKEN"], "warm_up": True})
    toy_docker.wait_for_journal("begin", 2)
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    inspected = docker("inspect", f"llmb-{run_id}-train")
    toy_docker.gate.touch()
    assert await_run(running)["state"] == "completed"
    assert hashlib.sha256(TOKEN.encode()).hexdigest() in (toy_docker.work(run_id) / "token.sha256").read_text()
    assert TOKEN not in commands + inspected
    files = [file for file in toy_docker.folder.rglob("*") if file.is_file()]
    assert [file for file in files if TOKEN.encode() in file.read_bytes()] == []
