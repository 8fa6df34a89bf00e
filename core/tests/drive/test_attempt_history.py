"""The attempts of a job, from the scheduler, the job itself and the events of its run."""

from __future__ import annotations

import attrs
import pytest

from llmb import Attempt, AttemptStarted, Event, JobEnded, JobHistory, JobStatus, Queued, Running
from llmb.drive.finalize.attempt_history import list_attempts

ENDED = JobStatus(state="ended", cause="completed")
ONE = [Running(time=10.0), JobEnded(time=30.0, status=ENDED)]
REQUEUED = [
    Running(time=10.0),
    AttemptStarted(time=20.0, attempt=1),
    Queued(time=20.0),
    Running(time=25.0),
    JobEnded(time=40.0, status=ENDED),
]
RESTARTED_BETWEEN_TWO_POLLS = [
    Running(time=10.0),
    AttemptStarted(time=20.0, attempt=1),
    JobEnded(time=40.0, status=ENDED),
]


@pytest.mark.parametrize(
    ("events", "times"),
    [
        ([], []),
        ([Queued(time=1.0), *ONE], [(10.0, 30.0)]),
        (REQUEUED, [(10.0, 20.0), (25.0, 40.0)]),
        (RESTARTED_BETWEEN_TWO_POLLS, [(10.0, 20.0), (20.0, 40.0)]),
    ],
)
def test_the_events_of_the_run_give_times(events: list[Event], times: list[tuple[float, float]]) -> None:
    found = list_attempts(events, None, JobHistory(), "completed")
    assert [(each.start, each.end) for each in found] == times
    assert [each.attempt for each in found] == list(range(len(times)))


def test_the_file_of_the_job_is_more_exact_than_the_events() -> None:
    recorded = b"start\t0\t8\tn1 n2\nend\t0\t29\t\n"
    assert list_attempts(ONE, recorded, JobHistory(), "failed") == (
        Attempt(attempt=0, start=8.0, end=29.0, nodes=("n1", "n2"), cause="failed"),
    )


def test_the_scheduler_comes_first_and_the_others_fill_its_gaps() -> None:
    history = JobHistory(
        attempts=(
            Attempt(attempt=0, start=7.0, cause="preempted", followed_by="job 7 of alice (urgent) on n1"),
            Attempt(attempt=1, start=24.0, nodes=("n3",), suspended_s=2.0),
        )
    )
    first, last = list_attempts(REQUEUED, b"start\t0\t8\tn1\n", history, "completed")
    assert first == attrs.evolve(history.attempts[0], end=20.0, nodes=("n1",))
    assert last == Attempt(attempt=1, start=24.0, end=40.0, nodes=("n3",), cause="completed", suspended_s=2.0)


def test_accounting_that_omits_a_node_of_a_completing_job_does_not_hide_it() -> None:
    history = JobHistory(attempts=(Attempt(attempt=0, start=7.0, nodes=("n1",)),))
    [attempt] = list_attempts(ONE, b"start\t0\t8\tn1 n2\n", history, "failed")
    assert attempt.nodes == ("n1", "n2")


def test_accounting_that_lacks_the_first_attempt_describes_the_second() -> None:
    recorded = b"start\t0\t8\tn1\nend\t0\t19\t\nstart\t1\t25\tn2\nend\t1\t39\t\n"
    history = JobHistory(attempts=(Attempt(attempt=0, start=24.0, end=40.0, nodes=("n2",), cause="completed"),))
    assert list_attempts([], recorded, history, "completed") == (
        Attempt(attempt=0, start=8.0, end=19.0, nodes=("n1",), cause="requeued"),
        Attempt(attempt=1, start=24.0, end=40.0, nodes=("n2",), cause="completed"),
    )


@pytest.mark.parametrize("start", [24.0, 26.0])  # as the scheduler's clock shows it
@pytest.mark.parametrize("end", [39.0, None])
def test_an_attempt_of_accounting_is_one_attempt_of_the_job(start: float, end: float | None) -> None:
    recorded = b"start\t0\t8\tn1\nend\t0\t19\t\nstart\t1\t25\tn2\nend\t1\t39\t\nstart\t2\t50\tn3\nend\t2\t60\t\n"
    history = JobHistory(attempts=(Attempt(attempt=0, start=start, end=end, cause="preempted"),))
    assert list_attempts([], recorded, history, "completed") == (
        Attempt(attempt=0, start=8.0, end=19.0, nodes=("n1",), cause="requeued"),
        Attempt(attempt=1, start=start, end=39.0, nodes=("n2",), cause="preempted"),
        Attempt(attempt=2, start=50.0, end=60.0, nodes=("n3",), cause="completed"),
    )


def test_an_attempt_that_another_one_followed_was_requeued() -> None:
    assert [each.cause for each in list_attempts(REQUEUED, None, JobHistory(), "timeout")] == ["requeued", "timeout"]


def test_the_user_who_cancelled_the_job_is_named() -> None:
    [attempt] = list_attempts(ONE, None, JobHistory(cancelled_by="alice"), "cancelled")
    assert attempt.cause == "cancelled by alice"


@pytest.mark.parametrize("line", ["start", "start\tx\t1\tn1", "start\t0\tnow\tn1", "\xff\t0\t1", "start\t0\t1"])
def test_a_damaged_file_of_the_job_is_ignored(line: str) -> None:
    assert list_attempts([], line.encode(), JobHistory(), "failed") == ()
