"""The next state of a unit after each event. It is pure, as `decide` is."""

from collections.abc import Iterable

from attrs import evolve

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
    SubmissionUnanswered,
    Submitting,
)
from llmb.state_machine.units import State


def replay(events: Iterable[Event]) -> State:
    """Return the state that these events add up to."""
    state = State()
    for event in events:
        state = apply(state, event)
    return state


def apply(state: State, event: Event) -> State:  # noqa: C901  # one flat case per event
    """Return the state after an event."""
    match event:
        case Planned():
            return State()
        case Preparing():
            return evolve(state, stage="preparing", task=event.task)
        case Submitting():
            again = state.job_status is not None
            state = evolve(state, job_id=None, job_status=None, retries=state.retries + again)
            return evolve(state, stage="submitting", may_be_submitted=True)
        case SubmissionUnanswered():
            return evolve(state, reason=event.reason)
        case Queued():
            job_id = event.job_id or state.job_id
            return evolve(state, stage="queued", submitted=True, job_id=job_id, reason=event.reason)
        case Running():
            return evolve(state, stage="running", submitted=True, job_id=event.job_id or state.job_id, reason="")
        case AttemptStarted():
            return evolve(state, attempt=event.attempt)
        case CancelSent():
            return evolve(
                state, cancel_requested_ns=max(state.cancel_requested_ns, event.request), cancel_sent_ns=event.request
            )
        case JobEnded():
            job_id = event.status.job_id or state.job_id  # a short job has ended at the first poll
            return evolve(state, stage="ending", job_id=job_id, job_status=event.status, job_ended_at=event.time)
        case Ended():
            return evolve(state, stage="ended", ending=event)
    return state


def apply_cancel_request(state: State, request: int) -> State:
    """Return the state with the user's request. Requests are files of their own and not events of the run."""
    request = request or state.cancel_sent_ns  # a power failure may undo the file of a request that was sent
    if request == state.cancel_requested_ns or state.stage == "ended":
        return state
    return evolve(state, cancel_requested_ns=request)
