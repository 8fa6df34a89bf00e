"""Pauses between two steps, compared with the usual time between two printed steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmb import Step
from llmb.drive.long_pauses import is_long_pause
from llmb.logs.steps.step_series import StepSeries


def series_of(numbers: Sequence[int], time_s: float | None) -> StepSeries:
    series = StepSeries()
    series.add([Step(step=number, time_s=time_s, tflops_per_gpu=400.0) for number in numbers])
    return series


@pytest.mark.parametrize(
    ("numbers", "time_s", "paused_s", "is_long"),
    [
        (range(1, 20), 0.5, 299, False),
        (range(1, 20), 0.5, 301, True),
        (range(1, 20), 400.0, 1900, False),  # less than five steps
        (range(1, 20), 400.0, 2100, True),
        (range(10, 200, 10), 40.0, 1900, False),  # less than five lines of ten steps
        (range(10, 200, 10), 40.0, 2100, True),
    ],
)
def test_a_pause_is_long_by_the_usual_time_between_two_lines(
    numbers: Sequence[int], time_s: float, paused_s: float, is_long: bool
) -> None:
    assert is_long_pause(paused_s, series_of(numbers, time_s), if_unknown=not is_long) is is_long


@pytest.mark.parametrize(("numbers", "time_s"), [([10, 20, 30], 40.0), ([1, 2], 400.0), (range(1, 20), None)])
@pytest.mark.parametrize("if_unknown", [True, False])
def test_too_few_steps_or_rates_alone_do_not_show_what_is_usual(
    numbers: Sequence[int], time_s: float | None, if_unknown: bool
) -> None:
    assert is_long_pause(390, series_of(numbers, time_s), if_unknown=if_unknown) is if_unknown
