"""``target.max_jobs``: how many runs of a sweep have a job at a time, also if several processes drive the sweep."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb.drive.max_jobs import JobLimit
from llmb.state_machine.events import Planned, Preparing, Progress

from .fake_cluster import JobPlan
from .fake_process import REAL_FLOCK, Disk, Process
from .test_killed_anywhere import SCENARIOS, attach_for
from .world import Scenario, World

RUNS = "abcde"
SWEEP = Scenario(
    plans=lambda: {run_id: JobPlan(queue=2, steps=3) for run_id in RUNS},
    needs=dict.fromkeys(RUNS, ()),
    ends=dict.fromkeys(RUNS, "completed"),
    max_jobs=2,
)


def test_at_most_so_many_runs_have_a_job_and_all_complete(disk: Disk) -> None:
    with World(SWEEP, disk) as world:
        world.drive(Process())  # world.wait counts the jobs
        assert world.problems() == []
        details = {event.detail for event in world.events if isinstance(event, Progress) and event.state == "planned"}
        assert "waits (max_jobs = 2)" in details


def test_detaching_submits_the_first_runs_and_leaves_the_others_planned(disk: Disk) -> None:
    with World(SWEEP, disk) as world:
        with disk.running(process := Process(), world.home), world.session(process) as session:
            session.wait(until="submitted", sleep=world.wait)
            states = [result.state for result in session.results]
        assert states == ["queued", "queued", "planned", "planned", "planned"]
        world.finish()
        assert world.problems() == []


def test_a_run_whose_tasks_are_complete_is_planned_again_until_it_has_a_slot(disk: Disk) -> None:
    with World(SCENARIOS["two jobs at a time"], disk) as world:
        world.drive(Process())
        assert world.problems() == []
        events = [type(event) for event in world.record("c").events()]
        assert events[:3] == [Planned, Preparing, Planned]


@pytest.mark.parametrize("killed", [False, True], ids=["detaches", "killed"])
@pytest.mark.parametrize("boundary", [40, 60, 70, 80, 90, 110, 150])
def test_two_processes_count_together(boundary: int, *, killed: bool, disk: Disk) -> None:
    with World(SWEEP, disk) as world:
        other = iter([lambda: attach_for(world, 6, killed=killed)])
        world.drive(Process(between=lambda passed: next(other)() if passed == boundary else None))
        world.finish()
        assert world.problems() == []


def test_while_another_process_counts_no_run_is_submitted(disk: Disk) -> None:
    with World(SWEEP, disk) as world, disk.running(process := Process(), world.home):
        jobs_meanwhile = []
        with world.session(process) as session, counting(JobLimit("a", 2).file) as lock:

            def wait(_pause_s: float) -> None:
                world.wait()
                jobs_meanwhile.append(len(world.cluster.jobs))
                if len(jobs_meanwhile) == 3:
                    REAL_FLOCK(lock, fcntl.LOCK_UN)

            session.wait(until="submitted", sleep=wait)
            assert jobs_meanwhile[:3] == [0, 0, 0]
            assert len(world.cluster.jobs) == 2
        world.finish()
        assert world.problems() == []


@contextmanager
def counting(file: Path) -> Iterator[int]:
    """Lock the slots of a sweep, as another process does."""
    file.parent.mkdir()
    with open(file, "w") as opened:
        REAL_FLOCK(opened, fcntl.LOCK_EX)
        yield opened.fileno()
