"""Observations of units: what the effects and the scheduler report."""

from collections.abc import Mapping

import attrs

from llmb.state_machine.events import Ended
from llmb.state_machine.units import State, Unit
from llmb.values.job_status import JobHandle, JobStatus


@attrs.frozen
class DependenciesSeen:
    """States of the tasks that a run depends on, and their names in messages, by key.

    ``may_submit`` is False if as many runs of the sweep have jobs as ``target.max_jobs`` allows.
    """

    states: Mapping[str, State]
    names: Mapping[str, str] = attrs.field(factory=dict)
    may_submit: bool = True


@attrs.frozen
class Checked:
    """Result of a task's check: True if what the task creates is complete on the target."""

    complete: bool


@attrs.frozen(kw_only=True)
class OutOfSpace:
    """The target has no room for a task's output, so the task was not submitted."""

    reason: str
    remedy: str = ""


@attrs.frozen
class NotSubmitted:
    """The target failed before the run was submitted, and llmb does not try again."""

    reason: str


@attrs.frozen
class CancelDone:
    """The scheduler received this request."""

    request: int


@attrs.frozen
class ReferencesDropped:
    """A cancelled run no longer waits for its task."""


@attrs.frozen
class Unneeded:
    """No run waits for the task, and its job was cancelled."""


@attrs.frozen(kw_only=True)
class TaskFinalized:
    """The task was checked after its job ended. ``reason`` explains why it is not complete."""

    complete: bool
    reason: str = ""
    remedy: str = ""


# A submission is observed as its `JobHandle`. A run whose logs are copied, secrets removed and result written is
# observed as its last event, `Ended`.
Observation = (
    DependenciesSeen
    | Checked
    | JobHandle
    | OutOfSpace
    | NotSubmitted
    | JobStatus
    | CancelDone
    | ReferencesDropped
    | Unneeded
    | Ended
    | TaskFinalized
)


@attrs.frozen
class SecretsMissing:
    """The unit cannot be submitted by this process, because its environment lacks secrets. The state stays."""


UnitObservation = tuple[Unit, Observation | SecretsMissing | Exception]
"""A unit with what was observed of it, or with the error that concerns this unit alone."""
