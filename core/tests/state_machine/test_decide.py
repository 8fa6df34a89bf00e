"""The state machine, as tables: what each observation means in each state, and which effect each state calls for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from attrs import evolve, frozen

from llmb.state_machine.apply_events import apply, apply_cancel_request, replay
from llmb.state_machine.decide import decide, needs_poll, next_effect
from llmb.state_machine.decide_task import MAX_RETRIES, RETRYABLE
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
from llmb.state_machine.observations import (
    CancelDone,
    Checked,
    DependenciesSeen,
    Observation,
    OutOfSpace,
    ReferencesDropped,
    TaskFinalized,
    Unneeded,
)
from llmb.state_machine.units import NOT_SUBMITTED, Stage, State, Unit
from llmb.values.job_status import JobHandle, JobState, JobStatus

RUN = Unit(id="a", kind="run", depends_on=("image", "data"))
ALONE = Unit(id="b", kind="run")
TASK = Unit(id="image", kind="task", name="image import")
STAGES = get_args(Stage)

TASK_DONE = State(stage="ended", ending=Ended(state="completed"))
TASK_FAILED = State(stage="ended", ending=Ended(state="failed", cause="failed", reason="no disk", remedy="free some"))
NO_TASKS = DependenciesSeen({})
DONE = JobStatus(state="ended", cause="completed")
NEVER = JobStatus(state="pending", cause="impossible", reason="no such node")


@frozen
class CancelSeen:
    """The user's last request to cancel the run."""

    request: int


def status(state: Any, **more: Any) -> JobStatus:
    return JobStatus(state=state, **more)


def advance(unit: Unit, state: State, *observed: Observation | CancelSeen) -> State:
    """Return the state after these observations."""
    for seen in observed:
        if isinstance(seen, CancelSeen):
            state = apply_cancel_request(state, seen.request)
        else:
            for event in decide(unit, state, seen):
                state = apply(state, event)
    return state


def decided(unit: Unit, state: State, seen: Observation) -> list[Event]:
    return list(decide(unit, state, seen))


def submitted(job_id: str) -> JobHandle:
    return JobHandle(id="a", directory="/a", job_id=job_id)


REFUSED = JobHandle(id="a", directory="/a", refused="no")


def tasks(**states: State) -> DependenciesSeen:
    return DependenciesSeen({"image": State(), "data": State()} | states)


SUBMITTING = advance(ALONE, State(), NO_TASKS)
QUEUED = advance(ALONE, SUBMITTING, submitted("7"))
RUNNING = advance(ALONE, QUEUED, status("running", job_id="7"))
ENDING = advance(ALONE, RUNNING, DONE)
TASK_SUBMITTING = advance(TASK, State(), Checked(complete=False))
TASK_RUNNING = advance(TASK, TASK_SUBMITTING, submitted("3"), status("running", job_id="3"))


# tasks that are created at the same time

SHARDS = Unit(id="c", kind="run", depends_on=("image", "data", "more"), concurrent=frozenset({"more"}))


@pytest.mark.parametrize(
    ("data", "more", "awaited"),
    [
        (State(), State(), "data"),
        (State(), TASK_DONE, "data"),
        (TASK_DONE, State(), "more"),
        (State(), TASK_FAILED, "data"),  # its work is kept before the run fails
        (TASK_FAILED, State(), "more"),
    ],
)
def test_a_run_waits_for_all_tasks_that_are_created_at_the_same_time(data: State, more: State, awaited: str) -> None:
    [event] = decided(SHARDS, State(), tasks(image=TASK_DONE, data=data, more=more))
    assert event == Preparing(run_id="c", task=awaited)


def test_a_run_fails_once_no_task_beside_the_failed_one_is_left() -> None:
    for data, more in ((TASK_FAILED, TASK_DONE), (TASK_DONE, TASK_FAILED)):
        [event] = decided(SHARDS, State(), tasks(image=TASK_DONE, data=data, more=more))
        assert isinstance(event, JobEnded)
        assert event.status.reason == "no disk"


@pytest.mark.parametrize(
    ("concurrent", "beside"),
    [("", ["a", "b", "c"]), ("b", ["ab", "ab", "c"]), ("c", ["a", "bc", "bc"]), ("bc", ["abc", "abc", "abc"])],
)
def test_tasks_beside_a_task(concurrent: str, beside: list[str]) -> None:
    unit = Unit(id="r", kind="run", depends_on=("a", "b", "c"), concurrent=frozenset(concurrent))
    assert ["".join(unit.tasks_beside(key)) for key in "abc"] == beside
    assert unit.tasks_beside("other") == ()


# a run from its start to its end


def test_a_run_goes_through_its_stages() -> None:
    story: list[tuple[Observation, list[type[Event]], Stage]] = [
        (tasks(), [Preparing], "preparing"),
        (tasks(image=TASK_DONE), [Preparing], "preparing"),
        (tasks(image=TASK_DONE, data=TASK_DONE), [Submitting], "submitting"),
        (submitted("7"), [Queued], "queued"),
        (status("pending", job_id="7", reason="Priority"), [], "queued"),
        (status("running", job_id="7"), [Running], "running"),
        (status("ended", job_id="7", cause="completed"), [JobEnded], "ending"),
        (Ended(run_id="a", state="completed"), [Ended], "ended"),
    ]
    state = State()
    for seen, types, stage in story:
        events = decided(RUN, state, seen)
        assert [type(event) for event in events] == types, seen
        assert {event.run_id for event in events} <= {"a"}
        state = advance(RUN, state, seen)
        assert state.stage == stage
    assert state.run_state == "completed"


@pytest.mark.parametrize(
    ("seen", "event"),
    [
        (tasks(), Preparing(run_id="a", task="image")),
        (tasks(image=TASK_DONE), Preparing(run_id="a", task="data")),
        (
            evolve(tasks(), names={"image": "image import"}),
            Preparing(run_id="a", task="image", kind="image import"),
        ),
        (tasks(image=TASK_DONE, data=TASK_DONE), Submitting(run_id="a")),
    ],
)
def test_a_run_waits_for_the_first_task_that_is_not_complete(seen: DependenciesSeen, event: Event) -> None:
    assert decided(RUN, State(), seen) == [event]
    assert decided(RUN, apply(State(), event), seen) == [], "the same observation again means nothing"


def test_a_run_ends_with_the_task_that_it_needs() -> None:
    [event] = decided(RUN, State(), tasks(image=TASK_FAILED))
    assert event == JobEnded(run_id="a", status=status("ended", cause="failed", reason="no disk", remedy="free some"))
    state = apply(State(), event)
    assert (next_effect(RUN, state), state.run_state, state.may_be_submitted) == ("finalize", "planned", False)


def test_a_rejected_run_ends_with_the_reason() -> None:
    [event] = decided(
        ALONE, SUBMITTING, JobHandle(id="b", directory="/b", refused="no FP8 after noon", remedy="come back")
    )
    expected = status("ended", cause="refused", reason="no FP8 after noon", remedy="come back")
    assert event == JobEnded(run_id="b", status=expected)
    state = apply(SUBMITTING, event)
    assert (state.run_state, state.may_be_submitted, state.submitted) == ("submitting", True, False)


def test_a_job_that_has_ended_at_the_first_poll_keeps_its_id() -> None:
    ended = JobEnded(run_id="a", status=status("ended", job_id="7", cause="completed"))
    assert apply(State(stage="queued"), ended).job_id == "7"
    assert apply(State(stage="running", job_id="6"), JobEnded(run_id="a", status=status("ended"))).job_id == "6"


@pytest.mark.parametrize(
    ("before", "seen", "events"),
    [
        (QUEUED, status("pending", job_id="7"), []),
        (QUEUED, status("pending", job_id="8"), [Queued(run_id="b", job_id="8")]),
        (QUEUED, status("running", job_id="7"), [Running(run_id="b", job_id="7")]),
        (QUEUED, status("unknown", job_id="7"), []),
        (RUNNING, status("running", job_id="7"), []),
        (RUNNING, status("running"), []),
        (RUNNING, status("running", job_id="8"), [Running(run_id="b", job_id="8")]),
        (RUNNING, status("unknown"), []),
        (RUNNING, DONE, [JobEnded(run_id="b", status=DONE)]),
        (QUEUED, NEVER, [JobEnded(run_id="b", status=NEVER)]),
        (RUNNING, NEVER, [JobEnded(run_id="b", status=NEVER)]),
    ],
)
def test_a_submitted_job_is_followed(before: State, seen: JobStatus, events: list[Event]) -> None:
    assert decided(ALONE, before, seen) == events


def test_a_job_that_the_scheduler_no_longer_knows_is_lost_and_one_that_it_cannot_tell_of_yet_is_not() -> None:
    [event] = decided(ALONE, RUNNING, status("absent"))
    assert isinstance(event, JobEnded)
    assert event.status.cause == "lost"
    assert decided(ALONE, RUNNING, status("unknown")) == []


def test_a_requeued_job_starts_another_attempt() -> None:
    again = status("pending", job_id="7", attempt=1)
    assert decided(ALONE, RUNNING, again) == [AttemptStarted(run_id="b", attempt=1), Queued(run_id="b", job_id="7")]
    state = advance(ALONE, RUNNING, again)
    assert (state.stage, state.attempt) == ("queued", 1)
    assert decided(ALONE, state, again) == []
    assert decided(ALONE, state, status("running", job_id="7", attempt=1)) == [Running(run_id="b", job_id="7")]
    fast = status("running", job_id="7", attempt=2)  # it was requeued and started between two polls
    assert decided(ALONE, RUNNING, fast) == [AttemptStarted(run_id="b", attempt=2)]
    over = status("ended", cause="failed", attempt=1)
    assert decided(ALONE, RUNNING, over) == [AttemptStarted(run_id="b", attempt=1), JobEnded(run_id="b", status=over)]
    lost = status("ended", cause="lost", attempt=0)  # the number was in the job's directory
    assert decided(ALONE, state, lost) == [JobEnded(run_id="b", status=lost)]


# cancelling


@pytest.mark.parametrize("before", [State(), advance(RUN, State(), tasks())], ids=["planned", "preparing"])
def test_a_run_that_is_cancelled_before_its_submission_is_not_submitted(before: State) -> None:
    state = advance(RUN, before, CancelSeen(5))
    assert next_effect(RUN, state) == "drop_references"
    assert decided(RUN, state, tasks(image=TASK_DONE, data=TASK_DONE)) == []
    state = advance(RUN, state, ReferencesDropped())
    assert state.job_status == status("ended", cause="cancelled")
    assert next_effect(RUN, state) == "finalize"


def test_a_run_that_is_cancelled_during_its_submission_asks_the_scheduler_whether_there_is_a_job() -> None:
    state = advance(ALONE, SUBMITTING, CancelSeen(5))
    assert (next_effect(ALONE, state), needs_poll(state)) == ("cancel", False)
    state = advance(ALONE, state, CancelDone(5))
    assert (next_effect(ALONE, state), needs_poll(state)) == (None, True)
    assert decided(ALONE, state, status("unknown")) == []
    found = [Queued(run_id="b", job_id="7"), Running(run_id="b", job_id="7")]
    assert decided(ALONE, state, status("running", job_id="7")) == found
    absent = advance(ALONE, state, status("absent"))
    assert absent.job_status == status("ended", cause="cancelled")
    assert not absent.submitted


def test_a_submission_is_not_taken_for_absent_unless_it_is_cancelled() -> None:
    assert decided(ALONE, SUBMITTING, status("absent")) == []
    assert decided(ALONE, SUBMITTING, status("unknown")) == []
    assert decided(ALONE, SUBMITTING, DONE) == [Queued(run_id="b"), JobEnded(run_id="b", status=DONE)]


@pytest.mark.parametrize("before", [QUEUED, RUNNING], ids=["queued", "running"])
def test_each_request_to_cancel_is_sent_once(before: State) -> None:
    state = advance(ALONE, before, CancelSeen(5))
    assert next_effect(ALONE, state) == "cancel"
    state = advance(ALONE, state, CancelDone(5), CancelSeen(5))
    assert next_effect(ALONE, state) is None
    state = advance(ALONE, state, CancelSeen(9))
    assert next_effect(ALONE, state) == "cancel", "the user asked again, so the job gets no more grace"
    state = advance(ALONE, state, CancelDone(9))
    assert next_effect(ALONE, state) is None
    over = advance(ALONE, state, status("ended", cause="cancelled"))
    assert next_effect(ALONE, over) == "finalize"


def test_a_request_that_was_sent_is_not_forgotten_with_its_file() -> None:
    """A power failure may undo the request's file, which is not synced, and keep the record that it was sent."""
    state = advance(ALONE, replay([Submitting(), CancelSent(request=5)]), CancelSeen(0))
    assert (next_effect(ALONE, state), needs_poll(state)) == (None, True)


@pytest.mark.parametrize("before", [ENDING, apply(ENDING, Ended(state="completed"))], ids=["ending", "ended"])
def test_a_request_to_cancel_that_comes_too_late_changes_nothing(before: State) -> None:
    effect = next_effect(ALONE, before)
    late = advance(ALONE, before, CancelSeen(5))
    assert next_effect(ALONE, late) == effect
    assert decided(ALONE, late, CancelDone(5)) == []


# tasks


def test_a_task_that_is_complete_is_not_submitted() -> None:
    assert next_effect(TASK, State()) == "check"
    assert decided(TASK, State(), Checked(complete=True)) == [Ended(run_id="image", state="completed")]


def test_a_task_goes_through_its_stages_and_only_its_check_counts() -> None:
    assert next_effect(TASK, TASK_SUBMITTING) == "submit"
    assert next_effect(TASK, TASK_RUNNING) is None
    for cause in ("completed", "failed", "timeout"):
        ending = advance(TASK, TASK_RUNNING, status("ended", cause=cause))
        assert next_effect(TASK, ending) == "finalize"
        ended = advance(TASK, ending, TaskFinalized(complete=True))
        assert ended.ending == Ended(run_id="image", state="completed")
        failed = advance(TASK, ending, TaskFinalized(complete=False, reason="no disk", remedy="free some")).ending
        expected = "image import could not be created: no disk"
        assert failed == Ended(run_id="image", state="failed", cause="failed", reason=expected, remedy="free some")


@pytest.mark.parametrize("cause", sorted(RETRYABLE))
def test_a_task_whose_job_was_killed_by_something_else_is_retried(cause: Any) -> None:
    state = TASK_RUNNING
    killed = status("ended", cause=cause, reason="node n1 failed")
    for retry in range(MAX_RETRIES):
        state = advance(TASK, state, killed, TaskFinalized(complete=False, reason="node n1 failed"))
        assert (state.stage, state.retries, state.job_id) == ("submitting", retry + 1, None)
        state = advance(TASK, state, submitted("4"))
    state = advance(TASK, state, killed, TaskFinalized(complete=False, reason="node n1 failed"))
    assert state.ending
    assert (state.ending.state, state.ending.cause) == ("failed", "failed")


@pytest.mark.parametrize(("rejected", "cause"), [(REFUSED, "refused"), (OutOfSpace(reason="no"), "failed")])
def test_a_rejected_task_fails_its_runs_with_the_same_cause(rejected: Observation, cause: str) -> None:
    state = advance(TASK, TASK_SUBMITTING, rejected)
    assert state.ending
    assert state.ending.cause == cause
    assert state.ending.reason == "image import could not be created: no"
    run = advance(RUN, State(), tasks(image=state))
    assert run.job_status
    assert run.job_status.cause == cause


@pytest.mark.parametrize("before", [State(), TASK_SUBMITTING, TASK_RUNNING, advance(TASK, TASK_RUNNING, DONE)])
def test_a_task_for_which_no_run_waits_is_forgotten(before: State) -> None:
    assert advance(TASK, before, Unneeded()) == State()


def test_a_task_that_ended_stays_ended() -> None:
    assert advance(TASK, TASK_DONE, Unneeded(), Checked(complete=False), status("absent")) == TASK_DONE


# every observation in every state

STATUSES = [status(state, job_id="7") for state in get_args(JobState)]
OF_RUNS: tuple[Observation, ...] = (
    tasks(),
    tasks(image=TASK_DONE, data=TASK_DONE),
    tasks(image=TASK_FAILED),
    submitted("7"),
    REFUSED,
    *STATUSES,
    status("running", job_id="8", attempt=1),
    NEVER,
    CancelDone(5),
    CancelDone(9),
    ReferencesDropped(),
    Ended(state="completed"),
)
OF_TASKS: tuple[Observation, ...] = (
    Checked(complete=True),
    Checked(complete=False),
    submitted("7"),
    REFUSED,
    OutOfSpace(reason="no"),
    *STATUSES,
    NEVER,
    Unneeded(),
    TaskFinalized(complete=True),
    TaskFinalized(complete=False, reason="no disk"),
)


OBSERVATIONS = {"run": OF_RUNS, "task": OF_TASKS}


def reachable(unit: Unit) -> set[State]:
    """Return every state that any observations lead to, in any order, with requests to cancel a run among them."""
    seen, new = set[State](), [State()]
    while new:
        state = new.pop()
        if state in seen:
            continue
        seen.add(state)
        requests = [CancelSeen(5), CancelSeen(9)] if unit.kind == "run" and state.cancel_requested_ns < 9 else []
        new += [advance(unit, state, step) for step in (*OBSERVATIONS[unit.kind], *requests)]
    return seen


each_unit = pytest.mark.parametrize("unit", [RUN, ALONE, TASK], ids=["run with tasks", "run", "task"])


@each_unit
def test_every_state_has_an_effect_or_waits_for_something_until_it_ended(unit: Unit) -> None:
    states = reachable(unit)
    assert {state.stage for state in states} == set(STAGES) - (set() if unit is RUN else {"preparing"})
    for state in states:
        waits = needs_poll(state)
        if unit.kind == "run" and state.stage in NOT_SUBMITTED:
            waits = not state.cancel_requested_ns  # for the states of its tasks
        assert (next_effect(unit, state) is not None or waits) == (state.stage != "ended"), state


@each_unit
def test_an_observation_that_is_repeated_or_comes_after_the_end_means_nothing(unit: Unit) -> None:
    next_job_too = JobStatus | TaskFinalized  # the next job of a task may end as the last one did
    for state in reachable(unit):
        for seen in OBSERVATIONS[unit.kind]:
            once = advance(unit, state, seen)
            if state.stage == "ended":
                assert once == state, seen
            if unit.kind == "run" or not isinstance(seen, next_job_too):
                assert advance(unit, once, seen) == once, (state, seen)


@each_unit
def test_a_unit_goes_back_only_to_the_queue_or_to_be_created_again(unit: Unit) -> None:
    for state in reachable(unit):
        for seen in OBSERVATIONS[unit.kind]:
            before, after = state.stage, advance(unit, state, seen).stage
            requeued = (before, after) == ("running", "queued")
            again = unit.kind == "task" and after in ("planned", "submitting")
            assert STAGES.index(after) >= STAGES.index(before) or requeued or again, (state, seen)


@pytest.mark.parametrize("unit", [RUN, ALONE], ids=["run with tasks", "run"])
def test_a_cancelled_run_is_never_submitted(unit: Unit) -> None:
    for state in reachable(unit):
        if state.cancel_requested_ns:
            assert next_effect(unit, state) != "submit"


@pytest.mark.parametrize(
    "act", [lambda events: events, lambda events: [*events, *events[-1:]]], ids=["once", "the last one twice"]
)
def test_replaying_the_events_gives_the_state(act: Callable[[list[Event]], list[Event]]) -> None:
    state, events = State(), [Planned(run_id="b")]
    story: list[Observation] = [
        tasks(image=TASK_DONE),
        tasks(image=TASK_DONE, data=TASK_DONE),
        submitted("7"),
        status("running", job_id="7"),
        status("pending", job_id="7", attempt=1, reason="requeued"),
        status("running", job_id="7", attempt=1),
        CancelDone(5),
        status("ended", cause="cancelled", attempt=1),
        Ended(run_id="a", state="cancelled"),
    ]
    for seen in story:
        for event in decide(RUN, state, seen):
            events.append(event)
            state = apply(state, event)
        assert replay(act(events)) == state


def test_a_run_that_may_be_submitted_may_have_a_job_and_a_submitted_one_has() -> None:
    facts = {state: (state.may_be_submitted, state.submitted) for state in (State(), SUBMITTING, QUEUED, ENDING)}
    assert list(facts.values()) == [(False, False), (True, False), (True, True), (True, True)]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (State(), "planned"),
        (advance(RUN, State(), tasks()), "preparing"),
        (SUBMITTING, "submitting"),
        (apply(SUBMITTING, SubmissionUnanswered(reason="no route")), "submitting"),
        (QUEUED, "queued"),
        (RUNNING, "running"),
        (ENDING, "running"),
        (advance(ALONE, QUEUED, DONE), "running"),
        (advance(RUN, advance(RUN, State(), tasks()), tasks(image=TASK_FAILED)), "preparing"),
        (evolve(ENDING, stage="ended", ending=Ended(state="timeout")), "timeout"),
    ],
)
def test_until_its_result_is_recorded_a_run_keeps_the_state_that_users_see(state: State, shown: str) -> None:
    assert state.run_state == shown
