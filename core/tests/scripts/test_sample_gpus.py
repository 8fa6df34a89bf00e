"""sample_gpus.sh with a program that prints what nvidia-smi printed on machines with H100 and older drivers."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from parts.deadline import DEADLINE_S, wait_until

from llmb import resource_text
from llmb.analysis.power_and_throttling import summarise_telemetry

STAND_IN = Path(__file__).parent / "nvidia-smi"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in first into PATH."""
    (tmp_path / "sample_gpus.sh").write_text(resource_text("llmb.scripts", "sample_gpus.sh"))
    monkeypatch.setenv("PATH", f"{STAND_IN}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def sample(folder: Path, count: int, end: signal.Signals = signal.SIGUSR1) -> list[str]:
    """Return what sample_gpus.sh printed, ended by a signal after so many samples."""
    output = folder / "out"
    with open(output, "w") as file:
        process = subprocess.Popen(["bash", str(folder / "sample_gpus.sh"), "1"], stdout=file, start_new_session=True)
        wait_until(lambda: output.read_text().count(", gpu, ") >= count or process.poll() is not None, "the samples")
        os.killpg(process.pid, end)
        assert process.wait(DEADLINE_S) == 0
    return output.read_text().splitlines()


@pytest.mark.parametrize("end", [signal.SIGUSR1, signal.SIGTERM])
def test_each_gpu_is_sampled_until_the_job_ends(path: Path, end: signal.Signals) -> None:
    lines = sample(path, 4, end)
    found = summarise_telemetry(lines, None, 2)
    assert (found.gpus, found.power_w, found.sm_clock_mhz) == (2, 643.21, 1755)
    assert found.errors == ()
    assert found.cpu_share is not None
    assert [(each.gpu, each.detail) for each in found.problems] == [(1, "link 17: Replay +1")]


def test_older_drivers_know_another_name_of_a_field(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD_DRIVER", "yes")
    assert summarise_telemetry(sample(path, 2), None, 2).samples >= 2


def test_only_the_gpus_of_the_job_are_sampled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    sample(path, 2)
    assert "--id=1" in (path / "arguments").read_text()


def test_a_machine_without_the_tool_reports_it_once_and_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = subprocess.run(["bash", str(path / "sample_gpus.sh"), "1"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{os.uname().nodename}, error, nvidia-smi not found\n")


def test_a_tool_that_fails_is_reported_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "yes")
    done = subprocess.run(["bash", str(path / "sample_gpus.sh"), "1"], capture_output=True, text=True)
    assert done.returncode == 0
    [error] = summarise_telemetry(done.stdout.splitlines(), None, 1).errors
    assert "couldn't communicate with the NVIDIA driver" in error
