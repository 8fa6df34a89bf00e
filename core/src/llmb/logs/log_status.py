"""``status`` of a log in the output of ``llmb parse``."""

from __future__ import annotations

from typing import Literal

from llmb.logs.step_series import StepSeries
from llmb.values.causes import CAUSES

LogStatus = Literal["complete", "incomplete", "no_data", "nan"]


def log_status(series: StepSeries, steps_asked: int | None = None) -> LogStatus:
    """Return whether a log contains all steps of its run: ``steps_asked``, else the number that the log announces.

    ``no_data`` means that there is no step, and ``nan`` that a loss was NaN at any step. ``complete`` means that all
    steps are there, even if a failure follows them. If the number of steps is unknown, a log is ``complete`` unless it
    reports a failure without reporting that the run finished. A log without the end of the training is incomplete if
    the framework prints the end.
    """
    if not series.steps:
        return "no_data"
    if series.nan:
        return "nan"
    if series.missing_end:
        return "incomplete"
    total = steps_asked if steps_asked is not None else series.total_steps
    if total is not None:
        return "complete" if series.count >= total else "incomplete"
    failed = series.has_notice(*CAUSES)
    return "incomplete" if failed and not series.has_notice("finished") else "complete"
