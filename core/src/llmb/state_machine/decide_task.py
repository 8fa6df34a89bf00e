"""The part of the state machine for tasks that runs share: their checks, their ends, and further tries. It is pure."""

from collections.abc import Iterator

from attrs import evolve

from llmb.state_machine.events import Ended, Event, Planned, Queued, Submitting
from llmb.state_machine.observations import Checked, Observation, OutOfSpace, TaskFinalized, Unneeded
from llmb.state_machine.units import State, Unit
from llmb.values.job_status import JobHandle, JobStatus

MAX_RETRIES = 2
"""How often a task is submitted again after its job was killed by something else."""

MISSING = "does not exist on the target, or is incomplete"
"""What is wrong with a result that only the user can create."""

RETRYABLE = frozenset({"lost", "preempted", "node failure", "cancelled"})
"""Causes of a job's end for which the task itself is not to blame."""


def decide_task(unit: Unit, state: State, seen: Observation) -> Iterator[Event]:
    """Return the events of a task that follow from an observation."""
    match seen:
        case Checked() if state.stage == "planned":
            yield _after_check(unit, complete=seen.complete)
        case JobHandle(refused="") if state.stage == "submitting":
            yield Queued(run_id=unit.id, job_id=seen.job_id)
        case JobHandle() if state.stage == "submitting":
            yield _fail_task(unit, refusal_status(seen))
        case OutOfSpace() if state.stage == "submitting":
            status = JobStatus(state="ended", cause="failed", reason=seen.reason, remedy=seen.remedy)
            yield _fail_task(unit, status)
        case TaskFinalized() if state.stage == "ending" and state.job_status:
            yield _end_task(unit, state, state.job_status, seen)
        case Unneeded() if state.stage != "ended":
            yield Planned(run_id=unit.id)  # a run that needs the task later starts with its check again


def _after_check(unit: Unit, *, complete: bool) -> Event:
    if complete:
        return Ended(run_id=unit.id, state="completed")
    if not unit.must_exist:
        return Submitting(run_id=unit.id)
    reason, remedy = f"{unit.name} {MISSING}", "create it, or correct the spec; `llmb doctor SPEC` checks it again"
    return Ended(run_id=unit.id, state="failed", cause="failed", reason=reason, remedy=remedy)


def _end_task(unit: Unit, state: State, status: JobStatus, seen: TaskFinalized) -> Event:
    """Decide how a task ended. Only its check counts, not the exit code of its job."""
    if seen.complete:
        return Ended(run_id=unit.id, state="completed")
    if status.cause in RETRYABLE and state.retries < MAX_RETRIES:
        return Submitting(run_id=unit.id)
    return _fail_task(unit, evolve(status, cause="failed", reason=seen.reason, remedy=seen.remedy))


def refusal_status(handle: JobHandle) -> JobStatus:
    """Return the status of a job that the scheduler rejected."""
    return JobStatus(state="ended", cause="refused", reason=handle.refused, remedy=handle.remedy)


def _fail_task(unit: Unit, status: JobStatus) -> Ended:
    reason = f"{unit.name} could not be created: {status.reason}"
    return Ended(run_id=unit.id, state="failed", cause=status.cause, reason=reason, remedy=status.remedy)
