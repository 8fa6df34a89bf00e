"""Ending of a run: the state that follows from the scheduler's report and the log together.

| cause of the job's end   | all steps | loss NaN | state of the run   |
|--------------------------|-----------|----------|--------------------|
| cancelled                | yes or no | any      | cancelled          |
| any other                | yes or no | yes      | failed             |
| completed                | yes       | no       | completed          |
| completed                | no        | no       | failed             |
| timeout                  | yes       | no       | completed          |
| timeout                  | no        | no       | timeout            |
| lost                     | yes or no | no       | lost               |
| any other                | yes or no | no       | failed             |

If the scheduler reports only that the job failed, that its end is unknown, or that it completed although steps are
missing, a message of the scheduler in the job's log replaces this cause. `CAUSES` contains the texts.
"""

from __future__ import annotations

from collections.abc import Set

import attrs

from llmb.values.causes import CAUSES, Cause
from llmb.values.job_status import JobStatus, RunState
from llmb.values.steps import NoticeKind


@attrs.frozen(kw_only=True)
class Ending:
    """State of a run that is over, and its explanation: empty if the run completed without trouble.

    ``search_logs`` is True if the logs may contain a more precise cause.
    """

    state: RunState
    cause: Cause
    reason: str = ""
    remedy: str = ""
    search_logs: bool = False


def determine_ending(
    status: JobStatus,
    *,
    steps_done: int,
    steps_requested: int,
    nan: bool = False,
    messages: Set[NoticeKind] = frozenset(),
    parser_error: str = "",
) -> Ending:
    """Return the ending of a run whose job is over, from the first row of the truth table that applies.

    ``messages`` are the scheduler's messages in the logs. ``parser_error`` is why the logs were not read to their end.
    """
    all_steps, done = steps_done >= steps_requested, f"{steps_done} of {steps_requested} steps"
    cause = _find_cause(status.cause or "failed", all_steps, messages)
    if cause == "cancelled":
        return Ending(state="cancelled", cause=cause, reason=f"cancelled after {done}")
    if cause in ("completed", "timeout") and all_steps and not nan:
        hung = f"all {done} were done, then it hung until its time limit"
        return Ending(state="completed", cause=cause, reason=hung if cause == "timeout" else "")
    if nan:
        remedy = "check dtype, learning rate and data; a run that diverges measures nothing"
        ending = Ending(state="failed", cause=cause, reason=f"the loss was NaN ({done} done)", remedy=remedy)
    elif cause == "completed":
        return _end_with_missing_steps(status, done, parser_error)
    else:
        entry = CAUSES[cause]
        reason, remedy = _describe(status, cause, done), status.remedy or entry.remedy
        ending = Ending(state=entry.state, cause=cause, reason=reason, remedy=remedy, search_logs=entry.search_logs)
    return attrs.evolve(ending, reason="; ".join(filter(None, (ending.reason, parser_error))))


def _find_cause(reported: Cause, all_steps: bool, messages: Set[NoticeKind]) -> Cause:
    """Return the reported cause, or if it is too vague, the cause in the scheduler's messages."""
    if reported in ("failed", "lost") or (reported == "completed" and not all_steps):
        return next((cause for cause in CAUSES if cause in messages), reported)
    return reported


def _end_with_missing_steps(status: JobStatus, done: str, parser_error: str) -> Ending:
    if parser_error:
        reason, remedy = (
            f"{parser_error} ({done} read)",
            "fix the plugin, then `llmb parse` the log in the run's record",
        )
    else:
        reason = f"it ended without an error after {done}"
        remedy = status.remedy or "see the end of the log: the framework stopped early, or printed no step times"
    return Ending(state="failed", cause="completed", reason=reason, remedy=remedy, search_logs=not parser_error)


def _describe(status: JobStatus, cause: Cause, done: str) -> str:
    """Return one sentence on an unsuccessful end."""
    entry = CAUSES[cause]
    if cause == "timeout":
        return f"hit the time limit after {done}"
    if cause == "lost":
        return f"{status.reason or entry.text} ({done} done)"
    if not entry.search_logs:
        return entry.prefix + (status.reason or cause)
    text = ": ".join(filter(None, ("" if cause == "failed" else cause, status.reason)))
    exit_code = "it failed" if status.exit_code is None else f"exit code {status.exit_code}"
    return f"{text or exit_code} (after {done})"
