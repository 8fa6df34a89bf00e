"""The peak of this machine's CPU: measured once, never during a job, and again if other load disturbed it."""

from __future__ import annotations

import fcntl
import itertools
from pathlib import Path

import pytest

from llmb import Target
from llmb.testing import LocalHost
from llmb_local import cpu_peak
from llmb_local.options import LocalOptions
from llmb_local.plugin import Local


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list to which each measurement is appended."""
    made: list[float] = []

    def measure() -> cpu_peak.Peak:
        made.append(1e12)
        return cpu_peak.Peak(1e12, alone=True)

    monkeypatch.setattr(cpu_peak, "measure", measure)
    monkeypatch.setattr(cpu_peak, "LOCK_TIMEOUT_S", 0.0)
    return made


def test_it_is_measured_once_and_kept(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        cpu_peak.main(tmp_path / "peak", tmp_path / "a/lock")
    assert capsys.readouterr().out == "peak_flops.fp32=1e+12\n" * 2
    assert len(measured) == 1


def test_only_a_kept_peak_is_printed_while_a_job_runs(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="so there is no MFU"):
            cpu_peak.main(tmp_path, tmp_path / "lock")
        assert capsys.readouterr().out == ""
        assert measured == []
        (tmp_path / f"{cpu_peak._cpu_name()}.json").write_text('{"fp32": 5e11, "alone": true}')
        cpu_peak.main(tmp_path, tmp_path / "lock")
    assert capsys.readouterr().out == "peak_flops.fp32=5e+11\n"


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"fp32": null}'])
def test_a_damaged_file_is_measured_again(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    (tmp_path / f"{cpu_peak._cpu_name()}.json").write_text(kept)
    cpu_peak.main(tmp_path, tmp_path / "lock")
    assert capsys.readouterr().out == "peak_flops.fp32=1e+12\n"
    assert len(measured) == 1


def test_a_peak_under_load_is_reported_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = [cpu_peak.Peak(1e11, alone=False), cpu_peak.Peak(9e10, alone=False), cpu_peak.Peak(2e11, alone=True)]
    monkeypatch.setattr(cpu_peak, "measure", lambda: peaks.pop(0))
    for turn in range(2):
        with pytest.raises(SystemExit, match="measured under load, so MFU may be too high"):
            cpu_peak.main(tmp_path, tmp_path / f"lock-{turn}")
        assert capsys.readouterr().out == "peak_flops.fp32=1e+11\n"
    for _ in range(2):
        cpu_peak.main(tmp_path, tmp_path / "lock")
        assert capsys.readouterr().out == "peak_flops.fp32=2e+11\n"


def test_the_best_of_five_peaks_under_load_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = [cpu_peak.Peak(fp32, alone=False) for fp32 in (1e11, 3e11, 2e11, 2e11, 2e11)]
    monkeypatch.setattr(cpu_peak, "measure", lambda: peaks.pop(0))
    for turn in range(4):
        with pytest.raises(SystemExit):
            cpu_peak.main(tmp_path, tmp_path / f"lock-{turn}")
    capsys.readouterr()
    for turn in ("last", "none"):
        cpu_peak.main(tmp_path, tmp_path / f"lock-{turn}")
        assert capsys.readouterr().out == "peak_flops.fp32=3e+11\n"


def test_measuring_again_does_not_wait_for_a_job(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_peak, "LOCK_TIMEOUT_S", 1e9)
    (tmp_path / f"{cpu_peak._cpu_name()}.json").write_text('{"fp32": 5e11}')
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="measured under load"):
            cpu_peak.main(tmp_path, tmp_path / "lock")
    assert (capsys.readouterr().out, measured) == ("peak_flops.fp32=5e+11\n", [])


@pytest.mark.parametrize(("waits", "alone"), [(0, True), (4, True), (20, False)])
def test_waiting_threads_mean_load(waits: int, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ((100 * count, waits * count) for count in itertools.count())
    monkeypatch.setattr(cpu_peak, "_scheduled", lambda: next(clock))
    monkeypatch.setattr(cpu_peak, "SIZE", 16)
    monkeypatch.setattr(cpu_peak, "SECONDS", 0.0)
    assert cpu_peak.measure().alone is alone


def test_a_peak_that_cannot_be_kept_is_printed(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    cpu_peak.main(tmp_path / "file/peak", tmp_path / "lock")
    assert capsys.readouterr().out == "peak_flops.fp32=1e+12\n"
    assert measured


def test_a_real_product_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_peak, "SIZE", 64)
    monkeypatch.setattr(cpu_peak, "SECONDS", 0.01)
    assert 1e6 < cpu_peak.measure().fp32 < 1e16


def test_the_probe_leaves_the_work_directory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes before the check that no other user can change this directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kept = tmp_path / "home/.cache/llmb-cpu-peak" / f"{cpu_peak._cpu_name()}.json"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"fp32": 5e11, "alone": true}')
    work = tmp_path / "work"
    target = Target(scheduler="local", workdir=str(work), options=LocalOptions(), gpu_types=("cpu",))
    done = LocalHost().run(Local().probe(target))
    assert "peak_flops.fp32=5e+11" in done.stdout.splitlines()
    assert not work.exists()


def test_a_lock_that_is_a_link_is_one_line(tmp_path: Path, measured: list[float]) -> None:
    (tmp_path / "lock").symlink_to("elsewhere")
    with pytest.raises(SystemExit, match=r"^the CPU peak is not measured, because the lock .*/lock cannot be opened: "):
        cpu_peak.main(tmp_path, tmp_path / "lock")
    assert not measured
