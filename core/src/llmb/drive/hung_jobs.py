"""Hung jobs: a time limit that ended a job which had printed no step for unusually long."""

from collections.abc import Sequence

import attrs

from llmb.analysis.run_ending import Ending
from llmb.drive.long_pauses import is_long_pause
from llmb.logs.failures.commands_in_remedies import LAST_MESSAGES
from llmb.plan_runs import RunPlan
from llmb.records.last_progress import read_progress
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.state_machine.events import JobEnded
from llmb.values.job_history import Attempt


def find_last_pause_s(plan: RunPlan, record: RunRecord, logs: LogCopies, attempts: Sequence[Attempt]) -> float | None:
    """Return for how long a job printed no step before its time limit ended it, or None if that is not unusual.

    The pause is unknown if no process that followed the job saw its last step. The earliest known end of the job
    counts, because the clock of a node may differ from the clock by which a process saw the step.
    """
    progress, since_s = read_progress(record, logs.attempt)
    if progress is None or not progress.step or progress.step != logs.series.count or logs.parser_error:
        return None
    if progress.step >= plan.run.steps or not attempts or attempts[-1].start is None:
        return None
    seen_s = [event.time for event in record.events() if isinstance(event, JobEnded)]
    reported_s = [attempts[-1].end] if attempts[-1].end is not None else []
    paused_s = min(attempts[-1].start + plan.job.time_limit_s, *reported_s, *seen_s) - since_s
    return paused_s if is_long_pause(paused_s, logs.series, if_unknown=False) else None


def add_last_pause(ending: Ending, pause_s: float) -> Ending:
    """Return the ending at a time limit of a job that printed no step for so long before it."""
    hours, minutes = divmod(round(pause_s / 60), 60)
    duration = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    reason = f"{ending.reason}; it printed no step in its last {duration}"
    remedy = f"the training may hang, so that a longer limit does not help: read {LAST_MESSAGES}"
    return attrs.evolve(ending, reason=reason, remedy=remedy, search_logs=True, hung=True)
