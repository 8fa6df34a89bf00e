"""How far a log got."""

from __future__ import annotations

from typing import Literal

from llmb.logs.series import StepSeries

LogStatus = Literal["complete", "incomplete", "no_data", "nan"]


def log_status(series: StepSeries, steps_asked: int | None = None) -> LogStatus:
    """``complete`` where the number of steps asked for, or else the total that the log states, was reached.

    Where neither is known, a log without a word of failure is complete. A NaN loss in the run that counts is ``nan``,
    however far it got.
    """
    if not series.steps:
        return "no_data"
    if series.nan:
        return "nan"
    total = steps_asked or series.total_steps
    if total is not None:
        return "complete" if series.count >= total else "incomplete"
    failed = any(notice.kind not in ("total steps", "finished") for notice in series.notices)
    return "incomplete" if failed else "complete"
