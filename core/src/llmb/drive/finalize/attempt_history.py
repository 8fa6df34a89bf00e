"""Attempts of a job, put together from what the scheduler, the job itself and llmb recorded."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence

import attrs

from llmb.state_machine.events import AttemptStarted, Event, JobEnded, Queued, Running
from llmb.state_machine.units import State
from llmb.values.causes import Cause
from llmb.values.job_history import Attempt, JobHistory

CLOCK_ERROR_S = 60.0
"""By how much the clock of a node may be behind that of the scheduler."""

HISTORY_LIMIT_S = 10.0
"""How long after the end of a job a run waits for the job's history."""

REQUEUED = "requeued"
"""The cause of an attempt that another one followed, if the scheduler does not know more."""


def is_history_awaited(state: State, history: JobHistory | None) -> bool:
    """Check whether the history of a job is not complete yet, and may still become so in time."""
    passed_s = abs(time.time() - state.job_ended_at)  # a clock may be set back
    return history is not None and history.pending and passed_s < HISTORY_LIMIT_S


def list_attempts(
    events: Iterable[Event], recorded: bytes | None, history: JobHistory, cause: Cause
) -> tuple[Attempt, ...]:
    """Return the attempts of a job that is over, in order. ``cause`` is the reason of its end.

    Each value comes from the scheduler's history if it has one, else from the file that the job itself wrote, else from
    the times at which llmb saw the job.
    """
    own = _parse_attempts(recorded or b"")
    sources = [_number_as_recorded(history.attempts, own), own, _watch_attempts(events)]
    numbers = sorted(set().union(*sources))
    found = [_combine(number, [source[number] for source in sources if number in source]) for number in numbers]
    if not found:
        return ()
    *superseded, last = found
    last_cause = f"cancelled by {history.cancelled_by}" if cause == "cancelled" and history.cancelled_by else cause
    return (
        *(attrs.evolve(each, cause=each.cause or REQUEUED) for each in superseded),
        attrs.evolve(last, cause=last_cause),
    )


def _parse_attempts(data: bytes) -> Mapping[int, Attempt]:
    """Parse the lines that `record_attempt` of job_functions.sh writes, by the number of the attempt."""
    found: dict[int, Attempt] = {}
    for line in data.decode(errors="replace").split("\n")[:-1]:
        word, number, time, nodes = (*line.split("\t"), "", "", "")[:4]
        if not (number.isdecimal() and time.isdecimal()):
            continue
        attempt = found.get(int(number)) or Attempt(attempt=int(number))
        if word == "start":
            found[int(number)] = attrs.evolve(attempt, start=float(time), nodes=tuple(nodes.split()))
        elif word == "end":
            found[int(number)] = attrs.evolve(attempt, end=float(time))
    return found


def _number_as_recorded(attempts: Sequence[Attempt], own: Mapping[int, Attempt]) -> Mapping[int, Attempt]:
    """Return the attempts of the scheduler's history by number.

    If the history lacks attempts that the job recorded, as after a lag of accounting, their times give the numbers.
    """
    if len(attempts) >= len(own):
        return {each.attempt: each for each in attempts}
    found: dict[int, Attempt] = {}
    for each in attempts:
        distances = {number: _distance_s(each, known) for number, known in own.items() if number not in found}
        nearest = min(distances, key=distances.__getitem__)
        if distances[nearest] < math.inf:
            found[nearest] = each
    return found


def _distance_s(attempt: Attempt, known: Attempt) -> float:
    """Return the time between the start of an attempt in the history and the start that the job recorded.

    It is infinite if the job recorded a start that is not within that attempt.
    """
    if attempt.start is None or known.start is None:
        return math.inf
    latest = math.inf if attempt.end is None else attempt.end
    return abs(known.start - attempt.start) if attempt.start - CLOCK_ERROR_S <= known.start <= latest else math.inf


def _combine(number: int, sources: Sequence[Attempt]) -> Attempt:
    """Return an attempt with the first known value of each field, and the longest list of nodes."""
    return Attempt(
        attempt=number,
        start=next((each.start for each in sources if each.start is not None), None),
        end=next((each.end for each in sources if each.end is not None), None),
        nodes=max((each.nodes for each in sources), key=len),  # schedulers may omit nodes that are free again
        cause=next((each.cause for each in sources if each.cause), ""),
        followed_by=next((each.followed_by for each in sources if each.followed_by), ""),
        suspended_s=next((each.suspended_s for each in sources if each.suspended_s is not None), None),
    )


def _watch_attempts(events: Iterable[Event]) -> Mapping[int, Attempt]:
    """Return the attempts as llmb saw them: from the first poll that found the job running to the one that did not."""
    found: dict[int, Attempt] = {}
    number = 0
    for event in events:
        current = found.get(number)
        match event:
            case AttemptStarted():
                if current:
                    found[number] = attrs.evolve(current, end=event.time)
                number = event.attempt
                found[number] = Attempt(attempt=number, start=event.time)
            case Queued() if current:  # the attempt waits for its nodes
                found[number] = attrs.evolve(current, start=None)
            case Running() if current is None or current.start is None:
                found[number] = Attempt(attempt=number, start=event.time)
            case JobEnded() if current:
                found[number] = attrs.evolve(current, end=event.time)
    return found
