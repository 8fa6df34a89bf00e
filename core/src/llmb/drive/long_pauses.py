"""Pauses between two steps that are so long that the training may hang."""

from typing import Final

from llmb.analysis.time_left import estimate_duration_s
from llmb.logs.steps.step_series import StepSeries

PAUSE_S: Final = 300.0
"""Least time without a new step that is mentioned."""

PAUSE_FACTOR: Final = 5
"""Least ratio of that time to the usual time between two printed steps."""


def is_long_pause(paused_s: float, series: StepSeries, *, if_unknown: bool) -> bool:
    """Check whether a time without a new step is unusual, or return ``if_unknown`` if the usual time is not known."""
    if paused_s < PAUSE_S:
        return False
    usual_s = estimate_duration_s(series.steps, series.log_interval)
    return if_unknown if usual_s is None else paused_s >= PAUSE_FACTOR * usual_s
