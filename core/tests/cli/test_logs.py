"""The logs of a run as `llmb logs -f` prints them."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import pytest
from parts.command_line import command_line
from parts.recorded_runs import PUBLISHED_S, record_runs

from llmb import find_run
from llmb.cli.commands.logs import PAUSE_S, LogPrinter


def test_a_heading_is_printed_whenever_the_output_switches_to_another_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = LogPrinter(tmp_path, raw=True)
    for name, text in [("0.log", "a\n"), ("1.log", "b\n"), ("0.log", "c\n"), ("0.log", "d"), ("1.log", "e\n")]:
        with (tmp_path / name).open("a") as log:
            log.write(text)
        printer.print_new()
    assert capsys.readouterr().out == "a\n==> 1.log <==\nb\n==> 0.log <==\nc\nd\n==> 1.log <==\ne\n"


def test_the_samples_of_gpus_are_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.0.log").write_text("a\n")
    (tmp_path / "telemetry.0.log").write_text("n1, gpu, 1\n")
    LogPrinter(tmp_path, raw=True).print_new()
    assert capsys.readouterr().out == "a\n"


def test_the_reason_of_a_verdict_is_no_reason_for_missing_logs(capsys: pytest.CaptureFixture[str]) -> None:
    [run_id] = record_runs([[PUBLISHED_S] * 20])
    assert command_line(capsys)("logs", run_id).err == f"llmb: {run_id} (completed) has no logs\n"
    [run_id] = record_runs([[]], state="lost", reason="the job is gone")
    assert command_line(capsys)("logs", run_id).err == f"llmb: {run_id} (lost) has no logs: the job is gone\n"


def test_a_missing_baseline_is_no_reason_for_missing_logs(capsys: pytest.CaptureFixture[str]) -> None:
    [run_id] = record_runs([[PUBLISHED_S] * 20])
    file = Path(find_run(run_id).directory) / "result.json"
    judged = {"verdict": None, "reason": "no baseline is published for this run"}
    file.write_text(json.dumps(json.loads(file.read_text()) | judged))
    assert command_line(capsys)("logs", run_id).err == f"llmb: {run_id} (completed) has no logs\n"


def test_what_another_process_writes_is_printed_during_a_long_sleep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, clock = tmp_path / "0.log", [0.0]
    printed: list[str] = []

    def sleep(seconds: float) -> None:
        assert seconds <= PAUSE_S
        printed.append(capsys.readouterr().out)
        clock[0] += seconds
        with log.open("a") as file:
            file.write(f"{len(printed)}\n")

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    LogPrinter(tmp_path, raw=True).print_while_sleeping(1.0)
    assert clock[0] == pytest.approx(1.0)  # the scheduler is not polled early
    assert printed[:4] == ["", "1\n", "2\n", "3\n"]


def test_a_line_is_printed_once_if_ctrl_c_comes_right_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            super().write(text)
            raise KeyboardInterrupt

    (tmp_path / "train.0.log").write_text("step 1\n")
    printer = LogPrinter(tmp_path, raw=False)
    monkeypatch.setattr(sys, "stdout", interrupted := Interrupted())
    with pytest.raises(KeyboardInterrupt):
        printer.print_new()
    monkeypatch.setattr(sys, "stdout", last := io.StringIO())
    printer.print_new()
    assert interrupted.getvalue() + last.getvalue() == "step 1\n"
