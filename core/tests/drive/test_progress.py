"""Progress of runs that train: pauses between steps, and the time of the last step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb.drive import progress as module
from llmb.drive.progress import ProgressReporter
from llmb.drive.progress_files import ProgressFiles
from llmb.records.last_progress import read_progress
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.state_machine.events import Progress
from llmb.state_machine.units import State
from llmb.values.steps import Step


class Training:
    """A run of 100 steps, of which every ``log_interval``-th is printed, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_time_s: float, log_interval: int) -> None:
        self.now_s = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now_s, time=lambda: self.now_s)
        monkeypatch.setattr(module, "time", clock)
        self.series = SimpleNamespace(
            count=0, log_interval=log_interval, steps=[Step(step=n, time_s=step_time_s) for n in range(9)]
        )
        self.logs = SimpleNamespace(series=self.series, progress=self._progress, parser_error="")
        run: Any = SimpleNamespace(logs=self.logs, plan=SimpleNamespace(run=SimpleNamespace(steps=100)))
        self._reporter = ProgressReporter({"a": run}, {})

    def _progress(self, state: Any, detail: str, _time_left_s: float | None) -> Progress:
        return Progress(run_id="a", state=state, detail=detail, step=self.series.count, left_s=60.0)

    def details(self, after_s: float, *, count: int = 9, stage: Any = "running") -> list[str]:
        """Return what is reported when so much time has passed."""
        self.now_s += after_s
        self.series.count = count
        found = self._reporter.report({"a": State(stage=stage, submitted=True)}, {})
        return [event.detail for event in found if isinstance(event, Progress)]


@pytest.mark.parametrize(
    ("step_time_s", "log_interval", "first_s"), [(0.5, 1, 300), (100.0, 1, 500), (7.0, 10, 350), (3.0, 10, 300)]
)
def test_a_pause_is_mentioned_if_it_is_unusual(
    step_time_s: float, log_interval: int, first_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(monkeypatch, step_time_s, log_interval)
    assert training.details(0.0) == [""]
    assert training.details(first_s - 1) == []
    assert training.details(1) == ["no new step for 5 min"]
    assert training.details(600 - first_s) == ["no new step for 10 min"]
    assert training.details(299) == []
    assert training.details(1, count=10) == [""]


@pytest.mark.parametrize("count", [0, 100])
def test_start_up_and_exit_are_no_pauses(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, 0.5, 1)
    assert training.details(0.0, count=count) == [""]
    assert training.details(3000.0, count=count) == []


def test_steps_that_cannot_be_parsed_are_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, 0.5, 1)
    assert training.details(0.0) == [""]
    training.logs.parser_error = "the parser failed"
    assert training.details(3000.0) == []


def test_the_error_of_a_parser_is_shown_beside_the_attempt(tmp_path: Path) -> None:
    plan: Any = SimpleNamespace(
        job=SimpleNamespace(phases=(), sidecars=()),
        script=SimpleNamespace(logs={}),
        run=SimpleNamespace(id="a", name="a", steps=10),
    )
    plugin: Any = SimpleNamespace()
    logs = LogCopies(plan, RunRecord(tmp_path), plugin, plugin)
    logs.parser_error = "the parser failed"
    assert logs.progress("running").detail == "the parser failed"
    assert logs.progress("running", "attempt 1").detail == "attempt 1: the parser failed"


def test_a_job_that_is_over_has_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(monkeypatch, 0.5, 1)
    for stage, left_s in (("running", 60.0), ("ending", None)):
        state: Any = State(stage=stage, submitted=True)
        training._reporter.mark_logs_grown("a")
        [event] = training._reporter.report({"a": state}, {})
        assert isinstance(event, Progress)
        assert event.left_s == left_s


class Following:
    """A process that follows a run, with the record in a folder."""

    def __init__(self, folder: Path) -> None:
        self.record = RunRecord(folder)
        assert self.record.try_lock()
        self.logs = SimpleNamespace(attempt=0)
        run: Any = SimpleNamespace(record=self.record, logs=self.logs)
        self.files = ProgressFiles({"a": run})

    def see(self, time_s: float, step: int | None, detail: str = "") -> None:
        self.files.keep(Progress(run_id="a", state="running", step=step, detail=detail, time=time_s))

    def written(self, attempt: int = 0) -> tuple[int | None, float]:
        """Write the progress. Return the step and the time that are recorded."""
        self.files.write(now=True)
        progress, time_s = read_progress(self.record, attempt)
        return progress.step if progress else None, time_s


def test_the_time_of_a_recorded_progress_is_that_of_its_step(tmp_path: Path) -> None:
    first = Following(tmp_path)
    for time_s, step, expected_s in ((1.0, 5, 1.0), (300.0, 5, 1.0), (310.0, 6, 310.0)):
        first.see(time_s, step)
        assert first.written() == (step, expected_s)
    first.record.unlock()
    second = Following(tmp_path)  # `llmb attach`, while the job hangs
    second.see(900.0, 6)
    assert second.written() == (6, 310.0)
    second.see(910.0, 7)
    assert second.written() == (7, 910.0)


def test_a_step_belongs_to_the_attempt_in_which_it_was_seen(tmp_path: Path) -> None:
    process = Following(tmp_path)
    process.see(1.0, 50)
    process.logs.attempt = 1  # the scheduler requeued the job before the progress was written
    assert process.written(attempt=1) == (None, 0.0)
    process.see(2.0, 50)
    assert process.written(attempt=1) == (50, 2.0)
