"""Whole runs of the toy framework in containers of a real Docker engine."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

TOKEN = "very-secret-7d1f9c"


def start_at_gate(toy: Any, **tables: dict[str, Any]) -> tuple[Any, str]:
    """A run whose ranks wait in their container, and its id."""
    framework = {"gate": str(toy.gate)} | tables.pop("framework", {})
    running = toy.start("run", toy.spec(framework=framework, **tables), "--json")
    toy.wait_for_journal("begin")
    return running, toy.wait_for_state("running")


def end(process: Any) -> dict[str, Any]:
    out, err = process.communicate(timeout=60)
    assert out, err
    [run] = json.loads(out)["runs"]
    return dict(run)


def job_script(work: Path) -> int:
    """The process of a job's script on the machine itself."""
    [supervisor, *_] = (work / "started").read_text().split()
    [job] = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[:1]
    return int(job)


# the same as without a container


def test_a_run_in_an_image_has_the_same_record_as_one_without(toy_docker: Any) -> None:
    run = toy_docker.run(workload={"gpus": 2}, framework={"warm_up": True, "output": True})
    assert run["state"] == "completed", run
    assert run["metrics"]["step_time_s"] == 0.5
    record = Path(run["directory"])
    assert toy_docker.steps_of(record) == [1, 2, 3, 4, 5]
    assert {log.name for log in (record / "logs").iterdir()} == {"warm-up.0.0.log", "train.0.0.log", "train.0.1.log"}
    order = [(line.split()[0], line.split()[2]) for line in toy_docker.journal()]
    assert order[:2] == [("begin", "warm-up.0"), ("end", "warm-up.0")]
    assert sorted(order[2:]) == [("begin", "train.0"), ("begin", "train.1"), ("end", "train.0"), ("end", "train.1")]


def test_ranks_find_their_place_and_the_images_own_environment(toy_docker: Any) -> None:
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
    assert end(running)["state"] == "completed"


@pytest.mark.slow
def test_the_choice_of_the_engine_is_said_aloud_and_a_choice_of_the_user_is_not(toy_docker: Any) -> None:
    said = "images run in docker"
    assert said in toy_docker.llmb("run", toy_docker.spec()).stderr
    assert said not in toy_docker.llmb("run", toy_docker.spec(target={"runtime": "docker"})).stderr


def test_a_mount_can_be_read_only(toy_docker: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a, b"
    folder.mkdir()
    gate = {"gate": "/data/gate", "gate_step": 1}
    (folder / "gate").touch()
    assert toy_docker.run(framework=gate, mounts={str(folder): "/data:ro"})["state"] == "completed"


# how runs end


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"end": "exit 3", "end_step": 2, "end_rank": 1}, "phase train, rank 1: exit status 3"),
        ({"end": "kill 9", "end_step": 2}, "phase train, rank 0: killed by signal 9 (exit status 137)"),
        ({"end": "kill 11", "end_step": 2}, "phase train, rank 0: killed by signal 11 (exit status 139)"),
    ],
)
def test_how_a_rank_ended_is_told(toy_docker: Any, behaviour: dict[str, Any], told: str) -> None:
    run = toy_docker.run(framework={"gate": str(toy_docker.gate), "gate_step": 3, **behaviour}, workload={"gpus": 2})
    assert run["state"] == "failed"
    assert run["failure"]["cause"].startswith(told)


def test_a_container_without_memory_left_is_told_apart_from_a_killed_one(toy_docker: Any) -> None:
    target = {"container": {"ulimits": {}, "memory_gb": 0.05}}
    run = toy_docker.run(framework={"end": "memory", "end_step": 2}, target=target)
    assert run["state"] == "failed"
    assert "out of memory" in run["failure"]["cause"]
    assert "the container had no memory left" in run["failure"]["cause"]


def test_a_container_that_somebody_removes_is_told(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker)
    docker("rm", "--force", "--volumes", f"llmb-{run_id}-train")
    run = end(running)
    assert run["state"] == "failed"
    assert "signal 9" in run["failure"]["cause"] or "removed by somebody else" in run["failure"]["cause"]


def test_the_time_limit_ends_the_container(toy_docker: Any) -> None:
    run = toy_docker.run(framework={"gate": str(toy_docker.gate)}, workload={"time_limit": "2s"})
    assert run["state"] == "timeout"


@pytest.mark.parametrize("ignore_term", [False, True])
def test_cancel_stops_the_container(toy_docker: Any, docker: Any, ignore_term: bool) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"ignore_term": ignore_term})
    [cancelled] = toy_docker.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert end(running) == cancelled
    assert docker.containers == []


# what is killed


def test_llmb_may_be_killed_and_another_one_takes_the_run_up(toy_docker: Any) -> None:
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
    pid = job_script(work) if victim == "the job's script" else int((work / "started").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    assert end(running)["state"] in ("failed", "lost")
    assert docker.containers == []


def test_a_client_that_was_killed_changes_nothing(toy_docker: Any, docker: Any) -> None:
    """Docker's client only waits; the container is asked for again, and can be cancelled."""
    running, run_id = start_at_gate(toy_docker)
    asked = ["pgrep", "-f", f"docker wait llmb-{run_id}"]
    client = toy_docker.wait(lambda: subprocess.run(asked, capture_output=True, text=True).stdout)
    os.kill(int(client), signal.SIGKILL)
    [cancelled] = toy_docker.runs("cancel", run_id)
    assert cancelled["state"] == "cancelled"
    assert end(running) == cancelled
    assert docker.containers == []


def test_the_next_start_removes_what_a_kill_left_behind(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker)
    work = toy_docker.work(run_id)
    job = job_script(work)
    running.kill()
    running.communicate()
    for pid in (int((work / "started").read_text().split()[0]), job):
        os.kill(pid, signal.SIGKILL)
    assert docker.containers == [f"llmb-{run_id}-train"]
    second = toy_docker.run()
    assert second["state"] == "completed"
    assert docker.containers == []
    [lost] = toy_docker.runs("attach", run_id)
    assert lost["state"] == "lost"


def test_the_daemon_dies_and_the_run_goes_on(toy_docker: Any, docker: Any) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2, "warm_up": True})
    toy_docker.wait_for_journal("begin", 2)
    docker.kill()
    log = toy_docker.work(run_id) / "out.log"
    toy_docker.wait(lambda: "docker does not answer" in log.read_text())
    docker.start()
    toy_docker.gate.touch()
    run = end(running)
    assert run["state"] == "completed", run
    assert toy_docker.steps_of(Path(run["directory"])) == [1, 2, 3, 4, 5]
    assert len(toy_docker.journal("begin")) == 2


def test_a_daemon_that_ends_its_containers_when_it_comes_back_is_told_with_its_remedy(
    toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, run_id = start_at_gate(toy_docker, framework={"gate_step": 2})
    docker.kill()
    toy_docker.wait(lambda: "docker does not answer" in (toy_docker.work(run_id) / "out.log").read_text())
    monkeypatch.setattr(docker, "live_restore", False)  # what a daemon does that starts
    docker.start()
    run = end(running)
    assert run["state"] == "failed"
    assert 'with "live-restore": true in its daemon.json a run goes on' in run["failure"]["cause"]
    assert toy_docker.steps_of(Path(run["directory"])) == [1, 2]


# secrets


def test_a_secret_reaches_the_job_and_is_written_nowhere(
    toy_docker: Any, docker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_TOKEN", TOKEN)
    running, run_id = start_at_gate(toy_docker, framework={"secrets": ["TOY_TOKEN"], "warm_up": True})
    toy_docker.wait_for_journal("begin", 2)
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    inspected = docker("inspect", f"llmb-{run_id}-train")
    toy_docker.gate.touch()
    assert end(running)["state"] == "completed"
    assert hashlib.sha256(TOKEN.encode()).hexdigest() in (toy_docker.work(run_id) / "token.sha256").read_text()
    assert TOKEN not in commands + inspected
    files = [file for file in toy_docker.folder.rglob("*") if file.is_file()]
    assert [file for file in files if TOKEN.encode() in file.read_bytes()] == []
