"""How a log stands: what ``status`` means in the output of ``llmb parse``."""

from __future__ import annotations

from typing import Literal

from llmb.logs.step_series import StepSeries
from llmb.values.causes import CAUSES

LogStatus = Literal["complete", "incomplete", "no_data", "nan"]


def log_status(series: StepSeries, steps_asked: int | None = None) -> LogStatus:
    """Whether a log holds all of its run: ``steps_asked`` steps, else as many as the log itself says there will be.

    ``no_data``: not one step. ``nan``: a loss of the run was NaN, however far it got. ``complete``: all its steps,
    whatever came after them; or, where nobody says how many, no word of a failure before it said that it finished.
    """
    if not series.steps:
        return "no_data"
    if series.nan:
        return "nan"
    total = steps_asked if steps_asked is not None else series.total_steps
    if total is not None:
        return "complete" if series.count >= total else "incomplete"
    failed = series.has_notice(*CAUSES)
    return "incomplete" if failed and not series.has_notice("finished") else "complete"
