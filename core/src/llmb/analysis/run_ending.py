"""Ending of a run: the state that follows from the scheduler's report and the log together.

| cause of the job's end | all steps                    | loss NaN | state of the run       |
|------------------------|------------------------------|----------|------------------------|
| cancelled              | yes or no                    | any      | cancelled              |
| any other              | yes or no                    | yes      | failed                 |
| completed              | yes                          | no       | completed              |
| completed              | no                           | no       | failed                 |
| timeout                | yes                          | no       | completed, with a note |
| timeout                | no                           | no       | timeout                |
| failed, out of memory  | yes, and only exit is left   | no       | completed, with a note |
| lost                   | yes or no                    | no       | lost                   |
| any other              | yes or no                    | no       | failed                 |

Only the exit is left if the last step was measured, and the job has no further phase or output to complete.

If the scheduler reports only that the job failed, that its end is unknown, or that it completed although steps are
missing, a message of the scheduler in the job's log replaces this cause. `CAUSES` contains the texts.
"""

from collections.abc import Set
from typing import Literal

import attrs

from llmb.values.causes import CAUSES, Cause
from llmb.values.job_status import JobStatus
from llmb.values.run_states import RunState
from llmb.values.steps import NoticeKind


@attrs.frozen(kw_only=True)
class Ending:
    """State of a run that is over, and its explanation. ``reason`` of a completed run is an error after its last step.

    ``search_logs`` is True if the logs may contain a more precise cause. ``hung`` is True if the job printed no step
    for long before its time limit.
    """

    state: RunState
    cause: Cause
    reason: str = ""
    remedy: str = ""
    search_logs: bool = False
    hung: bool = False

    @property
    def origin(self) -> Literal["infrastructure", "user"] | None:
        """The one who can fix the cause, or None if that is unknown."""
        return CAUSES[self.cause].origin if self.cause in CAUSES and not self.hung else None


def determine_ending(
    status: JobStatus,
    *,
    steps_done: int,
    steps_requested: int,
    only_exit_left: bool = False,
    missing_end: str = "",
    nan: bool = False,
    messages: Set[NoticeKind] = frozenset(),
    parser_error: str = "",
    cancelled_by: str = "",
) -> Ending:
    """Return the ending of a run whose job is over, from the first row of the truth table that applies.

    ``missing_end`` is the text at the end of a complete log that this log lacks. ``messages`` are the scheduler's
    messages in the logs. ``parser_error`` is why the logs were not read to their end. ``cancelled_by`` is the user who
    cancelled the job, if the scheduler knows.
    """
    all_steps, done = steps_done >= steps_requested and not missing_end, f"{steps_done} of {steps_requested} steps"
    if missing_end and steps_done >= steps_requested:
        done += f", but the log lacks the end of the training, {missing_end}"
    cause = _find_cause(status.cause or "failed", all_steps, messages)
    if cause == "cancelled":
        by = f" by {cancelled_by}" if cancelled_by else ""
        return Ending(state="cancelled", cause=cause, reason=f"cancelled{by} after {done}")
    if nan:
        remedy = (
            "compare with another dtype that `llmb recipes ADDRESS` lists, and check learning rate and data; "
            "a run that diverges measures nothing"
        )
        ending = Ending(state="failed", cause=cause, reason=f"the loss was NaN ({done} done)", remedy=remedy)
    elif all_steps and (cause in ("completed", "timeout") or (only_exit_left and CAUSES[cause].is_crash)):
        return Ending(state="completed", cause=cause, reason=_describe_exit(status, cause, steps_requested))
    elif cause == "completed":
        return _end_with_missing_steps(status, steps_done, done, parser_error)
    else:
        entry = CAUSES[cause]
        started = steps_done > 0 or status.job_id is not None
        reason, remedy = _describe(status, cause, done, started=started), status.remedy or entry.remedy
        ending = Ending(state=entry.state, cause=cause, reason=reason, remedy=remedy, search_logs=entry.search_logs)
    return attrs.evolve(ending, reason="; ".join(filter(None, (ending.reason, parser_error))))


def _find_cause(reported: Cause, all_steps: bool, messages: Set[NoticeKind]) -> Cause:
    """Return the reported cause, or if it is too vague, the cause in the scheduler's messages."""
    if reported in ("failed", "lost") or (reported == "completed" and not all_steps):
        return next((cause for cause in CAUSES if cause in messages), reported)
    return reported


def _end_with_missing_steps(status: JobStatus, steps_done: int, done: str, parser_error: str) -> Ending:
    if parser_error:
        remedy = "fix the plugin, then run `llmb parse LOGS --framework FRAMEWORK`"
        return Ending(state="failed", cause="completed", reason=f"{parser_error} ({done} read)", remedy=remedy)
    early = "see the end of the log (`llmb logs RUN`): the framework stopped early, or printed no step times"
    unread = "; if it printed some, `llmb parse LOGS --framework FRAMEWORK` shows why none was read"
    remedy = status.remedy or early + ("" if steps_done else unread)
    reason = "; ".join(filter(None, (f"it ended without an error after {done}", status.reason)))
    return Ending(state="failed", cause="completed", reason=reason, remedy=remedy, search_logs=True)


def _describe(status: JobStatus, cause: Cause, done: str, *, started: bool) -> str:
    """Return one sentence on an unsuccessful end. A job that did not start has done no steps to mention."""
    entry = CAUSES[cause]
    if cause == "timeout":
        return f"hit the time limit after {done}"
    if cause == "lost":
        return f"{status.reason or entry.text} ({done} done)"
    if not entry.search_logs:
        return entry.prefix + (status.reason or cause)
    return _describe_failure(status, cause) + (f" (after {done})" if started else "")


def _describe_failure(status: JobStatus, cause: Cause) -> str:
    text = ": ".join(filter(None, ("" if cause == "failed" else cause, status.reason)))
    return text or ("it failed" if status.exit_code is None else f"exit code {status.exit_code}")


def _describe_exit(status: JobStatus, cause: Cause, steps: int) -> str:
    """Return one sentence on the end of a job after its last step, or "" if it exited with 0."""
    if cause == "completed":
        return ""
    begin = f"after the last of {steps} steps, the job"
    if cause == "timeout":
        return f"{begin} hung until its time limit"
    failure, exit_code = _describe_failure(status, cause), f"exit code {status.exit_code}"
    is_named = status.exit_code is None or exit_code in failure
    return f"{begin} failed: {failure}{'' if is_named else f' ({exit_code})'}"
