"""Histories of jobs that are not complete yet: the run waits for its history, and everything else continues."""

from __future__ import annotations

import time

import pytest

from llmb.drive.finalize.attempt_history import HISTORY_LIMIT_S
from llmb.drive.target_loop import TargetLoop
from llmb.state_machine.events import Ended, JobEnded

from .fake_cluster import JobPlan
from .fake_process import Disk, Process
from .world import Scenario, World

LATE = Scenario(
    plans=lambda: {"a": JobPlan(steps=1, history_lag=9), "b": JobPlan(steps=4)},
    needs={"a": (), "b": ()},
    ends={"a": "completed", "b": "completed"},
    secret=("a",),
)
NEVER = Scenario(plans=lambda: {"a": JobPlan(history_lag=10**6)}, needs={"a": ()}, ends={"a": "completed"})


def test_another_run_ends_while_a_run_waits_for_its_history(disk: Disk) -> None:
    with World(LATE, disk) as world:
        world.drive(Process())
        assert world.problems() == []
        ends = [(type(event), event.run_id) for event in world.events if isinstance(event, Ended | JobEnded)]
    assert ends == [(JobEnded, "a"), (JobEnded, "b"), (Ended, "b"), (Ended, "a")]


def test_only_the_history_is_queried_again(disk: Disk) -> None:
    with World(LATE, disk) as world:
        world.drive(Process())
        commands = world.cluster.commands
        progress = [
            event for event in world.events if event.run_id == "a" and "copying" in getattr(event, "detail", "")
        ]
    assert commands.count("history") >= 9
    assert commands.count("remove secrets") == len(progress) == 1
    assert commands[-3:] == ["history"] * 3


@pytest.mark.parametrize("pauses_s", [(2.0, 30.0), (0.5, 30.0)])
def test_a_run_waits_for_its_history_until_the_limit(
    pauses_s: tuple[float, float], disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 2e9
    monkeypatch.setattr("time.time", lambda: now_s)
    monkeypatch.setattr(TargetLoop, "poll_interval_s", pauses_s)
    with World(NEVER, disk) as world, disk.running(Process(), world.home), world.session(Process()) as session:

        def sleep(pause_s: float) -> None:
            nonlocal now_s
            now_s += pause_s
            world.wait()

        events = list(session.events(sleep=sleep))
    [job_ended, ended] = [event for event in events if isinstance(event, Ended | JobEnded)]
    assert HISTORY_LIMIT_S <= ended.time - job_ended.time <= HISTORY_LIMIT_S + pauses_s[0]


def test_a_process_that_attaches_later_does_not_wait_again(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    with World(NEVER, disk) as world:
        with disk.running(Process(), world.home), world.session(Process()) as session:
            for event in session.events(sleep=world.wait):
                if isinstance(event, JobEnded):
                    break
        later_s = time.time() + HISTORY_LIMIT_S + 1
        monkeypatch.setattr("time.time", lambda: later_s)
        world.cluster.commands.clear()
        world.drive(Process())
        assert world.cluster.commands.count("history") == 1
        assert world.record("a").ended
