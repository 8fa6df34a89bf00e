"""Status of a log: complete, incomplete, no_data or nan."""

from __future__ import annotations

import math

import pytest

from llmb.logs.steps.step_series import StepSeries
from llmb.parsing.log_ending import log_status
from llmb.values.steps import Notice, NoticeKind, Step


def series_of(count: int, *notices: Notice, first: int = 0) -> StepSeries:
    series = StepSeries()
    series.add(Step(step=step, loss=1.0) for step in range(first, first + count))
    series.add(notices)
    return series


def test_a_log_without_steps_has_no_data() -> None:
    assert log_status(series_of(0, Notice(kind="nan"), Notice(kind="finished")), 50) == "no_data"


def test_a_nan_loss_makes_the_log_nan_however_far_it_got() -> None:
    series = series_of(50)
    series.add([Step(step=20, loss=math.nan)])

    assert log_status(series, 50) == "nan"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("steps", "status"), [(49, "incomplete"), (50, "complete"), (51, "complete")])
def test_the_requested_steps_must_be_reached(first: int, steps: int, status: str) -> None:
    assert log_status(series_of(steps, first=first), 50) == status


@pytest.mark.parametrize(("steps", "status"), [(49, "incomplete"), (50, "complete")])
def test_the_total_that_the_log_announces_must_be_reached(steps: int, status: str) -> None:
    assert log_status(series_of(steps, Notice(kind="total steps", value=50))) == status


def test_requested_steps_count_more_than_announced_ones() -> None:
    assert log_status(series_of(50, Notice(kind="total steps", value=100)), 50) == "complete"
    assert log_status(series_of(50, Notice(kind="total steps", value=50)), 100) == "incomplete"


def test_a_failure_after_all_steps_changes_nothing() -> None:
    assert log_status(series_of(50, Notice(kind="timeout")), 50) == "complete"


@pytest.mark.parametrize("kind", ["failed", "timeout", "node failure", "out of memory", "preempted", "cancelled"])
def test_a_failure_makes_a_log_of_unknown_length_incomplete(kind: NoticeKind) -> None:
    assert log_status(series_of(5)) == "complete"
    assert log_status(series_of(5, Notice(kind=kind))) == "incomplete"
    assert log_status(series_of(5, Notice(kind="finished"), Notice(kind=kind))) == "complete"
