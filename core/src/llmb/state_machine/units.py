"""Units of work, which are runs and the tasks that they share, and their states."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import attrs

from llmb.state_machine.events import Ended
from llmb.values.job_status import JobStatus
from llmb.values.run_states import RunState

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
    the target's host. ``name`` is what messages call a task. ``must_exist`` is True for a task that llmb cannot create.
    """

    id: str
    kind: Literal["run", "task"]
    name: str = ""
    depends_on: tuple[str, ...] = ()
    concurrent: frozenset[str] = frozenset()
    runs_on: RunsOn = "scheduler"
    must_exist: bool = False

    def tasks_beside(self, key: str) -> tuple[str, ...]:
        """Return the tasks that are created at the same time as this one, in order, with this one."""
        groups: list[list[str]] = []
        for each in self.depends_on:
            if not groups or each not in self.concurrent:
                groups.append([])
            groups[-1].append(each)
        return next((tuple(group) for group in groups if key in group), ())


@attrs.frozen(kw_only=True)
class State:
    """State of a unit: what its events add up to.

    ``may_be_submitted`` is True if the job may have been submitted, ``submitted`` if it certainly was.
    ``cancel_requested_ns`` and ``cancel_sent_ns`` are the times of the last request to cancel a run and of the last one
    that the scheduler received, in nanoseconds since 1970, or 0. ``retries`` counts how often a task was submitted
    again. ``job_ended_at`` is the time at which llmb saw the end of the job, in seconds since 1970.
    """

    stage: Stage = "planned"
    task: str = ""
    job_id: str | None = None
    reason: str = ""
    attempt: int = 0
    may_be_submitted: bool = False
    submitted: bool = False
    cancel_requested_ns: int = 0
    cancel_sent_ns: int = 0
    retries: int = 0
    job_status: JobStatus | None = None
    job_ended_at: float = 0.0
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
        return "submitting" if self.may_be_submitted else "preparing" if self.task else "planned"


class UnitState(NamedTuple):
    """A unit with its state."""

    unit: Unit
    state: State


UnitStates = Sequence[UnitState]
"""Units with their states."""
