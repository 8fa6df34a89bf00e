"""Pauses between two steps that are so long that the training may hang."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from llmb.analysis.mean_step_time import estimate_time_left_s
from llmb.analysis.run_ending import Ending
from llmb.logs.signature_files import LAST_MESSAGES
from llmb.logs.step_series import StepSeries
from llmb.records.last_progress import read_progress
from llmb.records.record import RunRecord
from llmb.records.run_logs import RunLogs
from llmb.values.job_history import Attempt

PAUSE_S: Final = 300.0
"""Least time without a new step that is mentioned."""

PAUSE_FACTOR: Final = 5
"""Least ratio of that time to the usual time between two printed steps."""


def is_long_pause(paused_s: float, series: StepSeries) -> bool:
    """Check whether a time without a new step is unusual for this training."""
    printing_s = estimate_time_left_s(series.steps, series.rhythm) or 0.0
    return paused_s >= max(PAUSE_S, PAUSE_FACTOR * printing_s)


def find_last_pause_s(
    record: RunRecord, logs: RunLogs, attempts: Sequence[Attempt], time_limit_s: float
) -> float | None:
    """Return for how long a job printed no step before its time limit ended it, or None if that is not unusual.

    It is unknown, too, if no process that followed the job saw its last step.
    """
    progress, since_s = read_progress(record, logs.attempt)
    if not attempts or attempts[-1].start is None or logs.parser_error:
        return None
    if progress is None or not progress.step or progress.step != logs.series.count:
        return None
    end_s = attempts[-1].start + time_limit_s
    if attempts[-1].end is not None:
        end_s = min(end_s, attempts[-1].end)
    paused_s = end_s - since_s
    return paused_s if is_long_pause(paused_s, logs.series) else None


def add_last_pause(ending: Ending, pause_s: float) -> Ending:
    """Return the ending at a time limit of a job that printed no step for so long before it."""
    reason = f"{ending.reason}; it printed no step in its last {pause_s / 60:.0f} min"
    remedy = f"the training may hang, so that a longer limit does not help: read {LAST_MESSAGES}"
    return attrs.evolve(ending, reason=reason, remedy=remedy, search_logs=True, hung=True)
