"""Values of the state machine: units of work, their state, and what is observed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from llmb.drive.events import Ended
from llmb.values.job_status import JobStatus, RunState

RunsOn = Literal["scheduler", "host"]
"""Place of a unit: a job of the scheduler, or a detached process of the target's host."""

Stage = Literal["planned", "preparing", "submitting", "queued", "running", "ending", "ended"]
"""Stages of a unit in their order. ``ending``: the job is over, and its logs and result are still to be recorded."""

NOT_SUBMITTED: frozenset[Stage] = frozenset({"planned", "preparing"})
"""Stages in which a run was certainly not submitted."""

IN_FLIGHT: frozenset[Stage] = frozenset({"queued", "running"})
"""Stages in which the job continues without this process."""

HAS_JOB: frozenset[Stage] = IN_FLIGHT | {"submitting"}
"""Stages in which a run has a job, or may have one."""


@attrs.frozen(kw_only=True)
class Unit:
    """A script that is submitted under a stable id: a run, or a task that several runs share.

    ``depends_on`` are the keys of the tasks that a run needs, in order. ``concurrent`` contains the tasks that may be
    created at the same time as the previous one. ``runs_on`` is "host" for a task that runs as a detached process of
    the target's host. ``name`` is what messages call a task.
    """

    id: str
    kind: Literal["run", "task"]
    name: str = ""
    depends_on: tuple[str, ...] = ()
    concurrent: frozenset[str] = frozenset()
    runs_on: RunsOn = "scheduler"

    def tasks_beside(self, key: str) -> tuple[str, ...]:
        """Return the tasks that are created at the same time as this one, in order, with this one."""
        group: list[str] = []
        for each in self.depends_on:
            if each not in self.concurrent:
                if key in group:
                    break
                group = []
            group.append(each)
        return tuple(group) if key in group else ()


@attrs.frozen(kw_only=True)
class State:
    """State of a unit: what its events add up to.

    ``handed_over`` is True if the job may have been submitted, ``submitted`` if it certainly was. ``cancel_requested``
    and ``cancel_sent`` identify the last request to cancel a run and the last one that the scheduler received, or are
    0. ``retries`` counts how often a task was submitted again.
    """

    stage: Stage = "planned"
    task: str = ""
    job_id: str | None = None
    reason: str = ""
    attempt: int = 0
    handed_over: bool = False
    submitted: bool = False
    cancel_requested: int = 0
    cancel_sent: int = 0
    retries: int = 0
    job_status: JobStatus | None = None
    ending: Ended | None = None

    @property
    def run_state(self) -> RunState:
        """The state as users see it. While the result is being recorded, the run keeps the state it had."""
        if self.ending:
            return self.ending.state
        if self.stage != "ending" and self.stage != "ended":
            return self.stage
        if self.submitted:
            return "running"
        return "submitting" if self.handed_over else "preparing" if self.task else "planned"


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


@attrs.frozen
class Submitted:
    """The scheduler has the job."""

    job_id: str | None = None


@attrs.frozen(kw_only=True)
class Rejected:
    """The scheduler rejected the job, or the target has no room for a task's output."""

    reason: str
    remedy: str = ""
    cause: Literal["refused", "failed"] = "refused"


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
class Orphaned:
    """No run waits for the task any more, and its job was cancelled."""


@attrs.frozen(kw_only=True)
class TaskFinalized:
    """The task was checked after its job ended. ``reason`` explains why it is not complete."""

    complete: bool
    reason: str = ""
    remedy: str = ""


# A run whose logs are copied, secrets removed and result written is observed as its last event, `Ended`.
Observation = (
    DependenciesSeen
    | Checked
    | Submitted
    | Rejected
    | NotSubmitted
    | JobStatus
    | CancelDone
    | ReferencesDropped
    | Orphaned
    | Ended
    | TaskFinalized
)


@attrs.frozen
class SecretsMissing:
    """The unit cannot be submitted by this process, because its environment lacks secrets. The state stays."""


UnitStates = Sequence[tuple[Unit, State]]
"""Units with their states."""

UnitObservation = tuple[Unit, Observation | SecretsMissing | Exception]
"""A unit with what was observed of it, or with the error that concerns this unit alone."""
