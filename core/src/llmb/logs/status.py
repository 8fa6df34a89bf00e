"""How a log stands: what ``status`` means in the output of ``llmb parse`` and ``llmb grade``."""

from __future__ import annotations

from typing import Literal

from llmb.logs.series import StepSeries

LogStatus = Literal["complete", "incomplete", "no_data", "nan"]


def log_status(series: StepSeries, steps: int | None = None) -> LogStatus:
    """Whether a log holds all of its run; ``steps`` is how many were asked for, else the log's own total counts.

    ``no_data``: not one step. ``nan``: a loss of the run was NaN, however far it went. ``complete``: as many steps as
    asked for or stated, whatever came after them; or, where nobody says how many, an end without a failure.
    """
    if not series.count:
        return "no_data"
    if series.nan:
        return "nan"
    wanted = steps if steps is not None else series.total_steps
    if wanted is not None:
        return "complete" if series.count >= wanted else "incomplete"
    broken = series.says("failure", "time limit", "out of memory", "preempted", "cancelled")
    return "incomplete" if broken and not series.says("finished") else "complete"
