"""The state machine of runs and shared tasks. It is pure: no function here touches a file, a host or a clock.

`decide` turns an observation into events, `apply` turns an event into the next state, and `next_effect` names what to
do in a state. The effect depends on the state alone and not on the transition that led there, so a process that is
killed between the two has nothing to remember: folding `apply` over the recorded events restores the state.
"""

from collections.abc import Iterator
from typing import Literal, get_args

from llmb.state_machine.apply_events import apply
from llmb.state_machine.decide_task import decide_task, refusal_status
from llmb.state_machine.events import (
    AttemptStarted,
    CancelSent,
    Ended,
    Event,
    JobEnded,
    Planned,
    Preparing,
    Queued,
    Running,
    Submitting,
)
from llmb.state_machine.observations import (
    CancelDone,
    DependenciesSeen,
    NotSubmitted,
    Observation,
    ReferencesDropped,
)
from llmb.state_machine.units import IN_FLIGHT, NOT_SUBMITTED, State, Unit
from llmb.values.job_status import JobHandle, JobStatus

Effect = Literal["cancel", "drop_references", "finalize", "check", "submit"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""All effects, in the order in which one tick performs them."""


def next_effect(unit: Unit, state: State) -> Effect | None:
    """Return the effect that this state calls for. Return None if the unit waits for a task or for the scheduler."""
    if state.stage == "ending":
        return "finalize"
    if unit.kind == "task":
        return "check" if state.stage == "planned" else "submit" if state.stage == "submitting" else None
    if state.stage in NOT_SUBMITTED:
        return "drop_references" if state.cancel_requested_ns else None
    if state.stage != "ended" and state.cancel_sent_ns != state.cancel_requested_ns:
        return "cancel"
    return "submit" if state.stage == "submitting" and not state.cancel_requested_ns else None


def needs_poll(state: State) -> bool:
    """Check whether the scheduler is queried for the unit in each tick.

    A run that was cancelled during its submission is polled, because only the scheduler knows whether it has the job.
    """
    cancelled = state.cancel_sent_ns > 0 and state.cancel_sent_ns == state.cancel_requested_ns
    return state.stage in IN_FLIGHT or (state.stage == "submitting" and cancelled)


def decide(unit: Unit, state: State, seen: Observation) -> Iterator[Event]:
    """Return the events that follow from an observation. A late or repeated observation has none."""
    if isinstance(seen, JobStatus):
        if state.stage == "submitting":
            yield from _find_submitted(unit, state, seen)
        elif state.stage in IN_FLIGHT:
            yield from _follow_job(unit, state, seen)
    elif unit.kind == "run":
        yield from _decide_run(unit, state, seen)
    else:
        yield from decide_task(unit, state, seen)


def _decide_run(unit: Unit, state: State, seen: Observation) -> Iterator[Event]:
    match seen:
        case DependenciesSeen() if state.stage in NOT_SUBMITTED and not state.cancel_requested_ns:
            yield from _wait_for_tasks(unit, state, seen)
        case ReferencesDropped() if state.stage in NOT_SUBMITTED:
            yield JobEnded(run_id=unit.id, status=JobStatus(state="ended", cause="cancelled"))
        case JobHandle(refused="") if state.stage == "submitting":
            yield Queued(run_id=unit.id, job_id=seen.job_id)
        case JobHandle() if state.stage == "submitting":
            yield JobEnded(run_id=unit.id, status=refusal_status(seen))
        case NotSubmitted() if state.stage in NOT_SUBMITTED or state.stage == "submitting":
            yield JobEnded(run_id=unit.id, status=JobStatus(state="ended", cause="refused", reason=seen.reason))
        case CancelDone() if next_effect(unit, state) == "cancel":
            yield CancelSent(run_id=unit.id, request=seen.request)
        case Ended() if state.stage == "ending":
            yield seen


def _wait_for_tasks(unit: Unit, state: State, seen: DependenciesSeen) -> Iterator[Event]:
    awaited, failure = _next_task(unit, seen)
    if awaited:
        if state.task != awaited or state.stage == "planned":
            yield Preparing(run_id=unit.id, task=awaited, kind=seen.names.get(awaited, ""))
        return
    if failure:
        status = JobStatus(state="ended", cause=failure.cause, reason=failure.reason, remedy=failure.remedy)
        yield JobEnded(run_id=unit.id, status=status)
        return
    if seen.may_submit:
        yield Submitting(run_id=unit.id)
    elif state.stage == "preparing":
        yield Planned(run_id=unit.id)  # its tasks are complete, and it waits for the jobs of other runs


def _next_task(unit: Unit, seen: DependenciesSeen) -> tuple[str, Ended | None]:
    """Return the task that the run waits for, or an empty string, and the end of the first task that failed.

    If a task fails, the run waits for the tasks that are created at the same time: their work is kept.
    """
    for key in unit.depends_on:
        ending = seen.states[key].ending
        if ending is None:
            return key, None
        if ending.state != "completed":
            return next((each for each in unit.tasks_beside(key) if seen.states[each].ending is None), ""), ending
    return "", None


def _find_submitted(unit: Unit, state: State, seen: JobStatus) -> Iterator[Event]:
    """Decide about a job that may have been submitted or not."""
    if seen.state == "absent" and state.cancel_requested_ns:
        yield JobEnded(run_id=unit.id, status=JobStatus(state="ended", cause="cancelled"))
    elif seen.state not in ("absent", "unknown"):
        queued = Queued(run_id=unit.id, job_id=seen.job_id, reason=seen.reason if seen.state == "pending" else "")
        yield queued
        yield from _follow_job(unit, apply(state, queued), seen)


def _follow_job(unit: Unit, state: State, seen: JobStatus) -> Iterator[Event]:
    if seen.state == "unknown":
        return
    if seen.state == "absent":
        reason = "the scheduler has no record of the job"
        yield JobEnded(run_id=unit.id, status=JobStatus(state="ended", cause="lost", reason=reason))
        return
    if seen.attempt > state.attempt:  # the number of a job that lost its directory may be unknown, which is 0
        yield AttemptStarted(run_id=unit.id, attempt=seen.attempt)
    new_id = seen.job_id not in (None, state.job_id)
    if seen.state == "ended" or seen.unsatisfiable:
        yield JobEnded(run_id=unit.id, status=seen)
    elif seen.state == "running" and (state.stage != "running" or new_id):
        yield Running(run_id=unit.id, job_id=seen.job_id)
    elif seen.state == "pending" and (state.stage != "queued" or new_id):
        yield Queued(run_id=unit.id, job_id=seen.job_id, reason=seen.reason)
