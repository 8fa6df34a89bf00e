"""Events: what happens to runs, as typed values, and their form in a record's ``events.jsonl``."""

import functools
import json
from collections.abc import Hashable, Mapping
from typing import Any, cast

import attrs

from llmb.values.causes import Cause
from llmb.values.job_status import JobStatus
from llmb.values.run_states import END_STATES, RunState, Verdict
from llmb.values.types.check_types import decode_fields


@attrs.frozen(kw_only=True)
class Event:
    """Base of all events. ``run_id`` is empty for events of a whole target, and the key of a task for those of a task.

    ``time`` is in seconds since 1970. It is 0 until `stamp` sets it, because the state machine has no clock.
    """

    run_id: str = ""
    time: float = 0.0


@attrs.frozen(kw_only=True)
class Planned(Event):
    """The run is recorded. Nothing was done on the target."""


@attrs.frozen(kw_only=True)
class Preparing(Event):
    """The run waits for the shared task with the key ``task``. ``kind`` is its name in messages."""

    task: str
    kind: str = ""


@attrs.frozen(kw_only=True)
class Submitting(Event):
    """All shared tasks of the run are complete. The job is about to be submitted."""


@attrs.frozen(kw_only=True)
class SubmissionUnanswered(Event):
    """The target did not confirm the submission, so the job may exist or not."""

    reason: str


@attrs.frozen(kw_only=True)
class Queued(Event):
    """The scheduler has the job. ``reason`` is the scheduler's word for why the job waits."""

    job_id: str | None = None
    reason: str = ""


@attrs.frozen(kw_only=True)
class Running(Event):
    """The job has started."""

    job_id: str | None = None


@attrs.frozen(kw_only=True)
class AttemptStarted(Event):
    """The scheduler started the job again: a new attempt, which writes new logs."""

    attempt: int


@attrs.frozen(kw_only=True)
class CancelSent(Event):
    """The scheduler received a request to cancel the job. ``request`` identifies the user's request."""

    request: int


@attrs.frozen(kw_only=True)
class JobEnded(Event):
    """The job is over. Logs and metrics are complete only after ``Ended``."""

    status: JobStatus


@attrs.frozen(kw_only=True)
class Ended(Event):
    """The run is over, and its result is recorded. ``cause`` and ``remedy`` explain a failure."""

    state: RunState
    reason: str = ""
    verdict: Verdict | None = None
    cause: Cause = ""
    remedy: str = ""


@attrs.frozen(kw_only=True)
class Progress(Event):
    """State, phase, steps, step time and time left (in seconds) and MFU (a fraction) of a run. Not recorded.

    ``limit_step`` is the step at which the time limit ends the job, None if it is unknown or after the last step.
    """

    name: str = ""
    state: RunState = "planned"
    phase: str = ""
    step: int | None = None
    steps: int | None = None
    step_time_s: float | None = None
    mfu: float | None = None
    left_s: float | None = None
    limit_step: int | None = None
    detail: str = ""


@attrs.frozen(kw_only=True)
class Skipped(Event):
    """A run that this process no longer drives, because of an error. Another process may resume it. Not recorded."""

    reason: str


@attrs.frozen(kw_only=True)
class TargetLost(Event):
    """The target does not respond. llmb keeps polling, and jobs there continue. Not recorded."""

    target: str
    reason: str


@attrs.frozen(kw_only=True)
class TargetBack(Event):
    """The target responds again. Not recorded."""

    target: str


@attrs.frozen(kw_only=True)
class Note(Event):
    """A sentence for the user. Not recorded."""

    text: str


RECORDED: Mapping[str, type[Event]] = {
    "planned": Planned,
    "preparing": Preparing,
    "submitting": Submitting,
    "submission_unanswered": SubmissionUnanswered,
    "queued": Queued,
    "running": Running,
    "attempt_started": AttemptStarted,
    "cancel_sent": CancelSent,
    "job_ended": JobEnded,
    "ended": Ended,
}
"""The names of recorded events in ``events.jsonl``. Renaming one makes old records unreadable."""

_NAMES = {cls: name for name, cls in RECORDED.items()}
_STATES: Mapping[type[Event], RunState] = {
    Planned: "planned",
    Preparing: "preparing",
    Submitting: "submitting",
    Queued: "queued",
    Running: "running",
}


def encode_event(event: Event) -> str:
    """Return a recorded event as a line of JSON. It has the key ``state`` if the event changes the run's state."""
    fields = attrs.asdict(event, filter=lambda field, value: field.name != "run_id" and value not in ("", None))
    state = {"state": _STATES[type(event)]} if type(event) in _STATES else {}
    return json.dumps({"time": fields.pop("time"), "event": _NAMES[type(event)], **state, **fields})


def decode_event(line: str | bytes, run_id: str) -> Event | None:
    """Return the event of a line of ``events.jsonl``, without values of a wrong type.

    Return None for a torn line or an event of a later version.
    """
    try:
        return _decode_table(json.loads(line), run_id)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _decode_table(table: dict[str, Any], run_id: str) -> Event | None:
    if "unanswered" in table:
        table = {**table, "event": "submission_unanswered", "reason": table["unanswered"]}
    cls = RECORDED.get(table["event"]) if "event" in table else _guess_class(table)
    if cls is None:
        return None
    if cls is JobEnded:
        status = {name: value for name, value in table["status"].items() if name in _field_names(JobStatus)}
        table = {**table, "status": JobStatus(**status)}
    known = {name: table[name] for name in _field_names(cast("Any", cls)) if name in table and name != "run_id"}
    values, _ = decode_fields(known, cls, "", required=False)
    return cls(run_id=run_id, **values)  # raises TypeError without a required value


@functools.cache
def _field_names(cls: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cast("Any", cls)))


def _guess_class(table: Mapping[str, Any]) -> type[Event] | None:
    """Return the class of a line that llmb wrote before events had names."""
    if "attempt" in table:
        return AttemptStarted
    if table.get("state") in END_STATES:
        return Ended
    return next((cls for cls, state in _STATES.items() if state == table.get("state")), None)
