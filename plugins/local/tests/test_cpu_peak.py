"""The peak of this machine's CPU: measured once, and never beside a job."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from llmb_local import cpu_peak


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The measurements that were made."""
    made: list[float] = []

    def measure() -> float:
        made.append(1e12)
        return 1e12

    monkeypatch.setattr(cpu_peak, "measure", measure)
    monkeypatch.setattr(cpu_peak, "PATIENCE_S", 0.0)
    return made


def test_it_is_measured_once_and_kept(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        cpu_peak.main(tmp_path / "peak", tmp_path / "a/lock")
    assert capsys.readouterr().out == "peak_flops.fp32=1e+12\n" * 2
    assert len(measured) == 1


def test_beside_a_job_only_what_is_kept_is_told(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="there will be no MFU"):
            cpu_peak.main(tmp_path, tmp_path / "lock")
        assert capsys.readouterr().out == ""
        assert measured == []
        (tmp_path / f"{cpu_peak._cpu_name()}.json").write_text('{"fp32": 5e11}')
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


def test_where_it_cannot_be_kept_it_is_told_all_the_same(
    tmp_path: Path, measured: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    cpu_peak.main(tmp_path / "file/peak", tmp_path / "lock")
    assert capsys.readouterr().out == "peak_flops.fp32=1e+12\n"
    assert measured


def test_a_product_is_really_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_peak, "SIZE", 64)
    monkeypatch.setattr(cpu_peak, "SECONDS", 0.01)
    assert 1e6 < cpu_peak.measure() < 1e16
