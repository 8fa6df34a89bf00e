"""Sampling of GPUs beside a job, on this machine and on a real Slurm cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from parts.pages import blocks, matches
from parts.toy import await_run, gated

STAND_IN = Path(__file__).parents[1] / "core/tests/scripts/nvidia-smi"
EVERY_SECOND = {"telemetry": {"interval": "1s"}}


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for nvidia-smi into PATH."""
    monkeypatch.setenv("PATH", f"{STAND_IN}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN", str(tmp_path))  # for its counter


def is_sampled(folder: Path, *nodes: str, word: str = "gpu") -> Any:
    """Return a condition: the sampler of each node has printed a line with this word for the job below this folder."""

    def check() -> bool:
        text = "".join(log.read_text() for log in folder.glob("runs/*/logs/telemetry.0.log"))
        return all(f"{node}, {word}, " in text for node in nodes)

    return check


def samplers(work: Path) -> list[str]:
    """Return the processes that still sample for a job."""
    found = subprocess.run(["pgrep", "-f", f"{work}/sample_gpus.sh"], capture_output=True, text=True)
    return found.stdout.split()


def check_energy(run: dict[str, Any]) -> None:
    telemetry = run["telemetry"]
    assert telemetry["power_w"] == 643.21
    assert telemetry["energy_per_step_j"] == pytest.approx(643.21 * run["gpus"] * run["metrics"]["step_time_s"])
    assert {(each["gpu"], each["problem"]) for each in telemetry["problems"]} == {(1, "NVLink errors")}
    copy = Path(run["directory"]) / "logs/telemetry.0.log"
    assert ", cost, " in copy.read_text()
    assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("nvidia_smi")
def test_a_run_has_the_energy_of_its_steps(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework=gated(toy), **EVERY_SECOND), "--json")
    toy.wait(is_sampled(toy.home / "work", os.uname().nodename))
    toy.gate.touch()
    run = await_run(running)
    assert run["state"] == "completed"
    check_energy(run)
    assert samplers(toy.home / "work/runs" / run["run_id"]) == []
    check_page(toy.llmb("show", run["run_id"]).stdout, run)


def check_page(shown: str, run: dict[str, Any]) -> None:
    """Check whether docs/judging.md shows the output of ``llmb show`` for a run, with other numbers."""
    [block] = (each for each in blocks("docs/judging.md") if " kJ per step" in each.text)
    page = block.text.replace("gpu01", os.uname().nodename).replace("/home/me/.local/share/llmb/runs/k3qqw", "...")
    expected = page.replace("k3qqw", run["run_id"].partition("-")[0])
    assert matches(expected, shown, numbers_differ=True), f"{shown}\nexpected:\n{expected}"


def test_a_machine_without_the_tool_is_one_note_of_a_completed_run(toy: Any) -> None:
    running = toy.start("run", toy.spec(framework=gated(toy), **EVERY_SECOND), "--json")
    toy.wait(is_sampled(toy.home / "work", os.uname().nodename, word="error"))
    toy.gate.touch()
    run = await_run(running)
    assert run["state"] == "completed"
    assert [note for note in run["notes"] if "telemetry" in note] == [
        f"telemetry: {os.uname().nodename}: nvidia-smi not found"
    ]


def test_without_the_table_nothing_is_sampled(toy: Any) -> None:
    run = toy.run()
    assert run["telemetry"] is None
    assert not list(toy.home.glob("work/runs/*/sample_gpus.sh"))


@pytest.mark.usefixtures("nvidia_smi")
def test_the_sampler_dies_with_a_job_that_fails(toy: Any) -> None:
    run = toy.run(framework={"end": "kill 9", "end_step": 2}, **EVERY_SECOND)
    assert run["state"] == "failed"
    assert run["failure"]["cause"].startswith("phase train, rank 0: killed by signal 9")
    toy.wait(lambda: samplers(toy.home / "work/runs" / run["run_id"]) == [])


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.usefixtures("nvidia_smi")
def test_each_node_of_a_cluster_is_sampled_once(toy_slurm: Any) -> None:
    run = toy_slurm.follow(
        (is_sampled(toy_slurm.workdir, "node1", "node2"), toy_slurm.gate.touch),
        workload={"gpus": 2},
        framework=gated(toy_slurm),
        target={"gpus_per_node": 1},
        **EVERY_SECOND,
    )
    assert run["state"] == "completed"
    assert run["telemetry"]["nodes"] == 2
    check_energy(run)


@pytest.mark.real
@pytest.mark.slow
def test_a_cluster_without_the_tool_completes_its_runs(toy_slurm: Any) -> None:
    reported = is_sampled(toy_slurm.workdir, "node1", word="error")
    run = toy_slurm.follow((reported, toy_slurm.gate.touch), framework=gated(toy_slurm), **EVERY_SECOND)
    assert run["state"] == "completed"
    assert "telemetry: node1: nvidia-smi not found" in run["notes"]
