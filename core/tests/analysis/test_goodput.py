"""Goodput: the parts of a job's wall time."""

from __future__ import annotations

import attrs
import pytest

from llmb import Attempt, Step
from llmb.analysis.goodput import WallTime, divide_wall_time
from llmb.analysis.steady_state import find_steady_state

STEADY = find_steady_state(Step(step=number, time_s=2.0) for number in range(1, 21))
SPIKES = find_steady_state(Step(step=number, time_s=7.0 if number in (10, 20) else 2.0) for number in range(1, 31))


def attempts(*times: tuple[float | None, float | None]) -> list[Attempt]:
    return [Attempt(attempt=number, start=start, end=end) for number, (start, end) in enumerate(times)]


def test_the_rest_of_the_wall_time_is_start_up_and_exit() -> None:
    wall = divide_wall_time(attempts((100, 150)), STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=50, productive_s=40, requeues_s=0, spikes_s=0, other_s=10)
    assert wall.goodput == pytest.approx(0.8)


def test_spikes_are_lost_time() -> None:
    wall = divide_wall_time(attempts((0, 80)), SPIKES, steps=30, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=80, productive_s=60, requeues_s=0, spikes_s=10, other_s=10)


@pytest.mark.parametrize(("saved_s", "checkpoints_s", "other_s"), [(4.0, 4, 6), (99.0, 10, 0)])
def test_checkpoints_between_steps_are_named_apart_from_the_rest(
    saved_s: float, checkpoints_s: float, other_s: float
) -> None:
    wall = divide_wall_time(attempts((100, 150)), STEADY, steps=20, earlier_steps=0, mean_of=1, checkpoints_s=saved_s)
    assert wall
    assert (wall.productive_s, wall.checkpoints_s, wall.other_s) == (40, checkpoints_s, other_s)


def test_an_attempt_that_began_again_is_lost_with_its_queue() -> None:
    wall = divide_wall_time(attempts((0, 60), (100, 150)), STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=150, productive_s=40, requeues_s=100, spikes_s=0, other_s=10)


def test_the_steps_before_a_checkpoint_are_not_lost() -> None:
    wall = divide_wall_time(attempts((0, 60), (100, 150)), STEADY, steps=40, earlier_steps=20, mean_of=1)
    assert wall == WallTime(wall_s=150, productive_s=80, requeues_s=60, spikes_s=0, other_s=10)


def test_a_suspension_before_or_after_the_steps_is_not_start_up() -> None:
    suspended = [attrs.evolve(each, suspended_s=30.0) for each in attempts((0, 80))]
    wall = divide_wall_time(suspended, STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=80, productive_s=40, requeues_s=0, spikes_s=0, other_s=10, suspended_s=30)


def test_the_step_during_which_a_job_was_suspended_is_no_spike() -> None:
    suspended = [attrs.evolve(each, suspended_s=12.0) for each in attempts((0, 80))]
    wall = divide_wall_time(suspended, SPIKES, steps=30, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=80, productive_s=60, requeues_s=0, spikes_s=0, other_s=8, suspended_s=12)


def test_the_suspension_of_an_earlier_attempt_is_not_lost_to_the_requeue() -> None:
    first, last = attempts((0, 60), (100, 150))
    suspended = [attrs.evolve(first, suspended_s=25.0), attrs.evolve(last, suspended_s=4.0)]
    wall = divide_wall_time(suspended, STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=150, productive_s=40, requeues_s=75, spikes_s=0, other_s=6, suspended_s=29)


def test_a_suspension_that_exceeds_the_lost_time_makes_no_part_negative() -> None:
    first, last = (attrs.evolve(each, suspended_s=999.0) for each in attempts((0, 60), (100, 150)))
    wall = divide_wall_time([first, last], STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall == WallTime(wall_s=150, productive_s=40, requeues_s=0, spikes_s=0, other_s=0, suspended_s=110)


def test_a_printed_spike_may_be_the_mean_of_several_steps() -> None:
    wall = divide_wall_time(attempts((0, 800)), SPIKES, steps=300, earlier_steps=0, mean_of=10)
    assert wall
    assert (wall.productive_s, wall.spikes_s) == (600, 100)


def test_times_in_full_seconds_never_give_a_goodput_above_one() -> None:
    wall = divide_wall_time(attempts((100, 139)), STEADY, steps=20, earlier_steps=0, mean_of=1)
    assert wall
    assert wall.goodput == 1.0


@pytest.mark.parametrize("times", [[], [(None, 50)], [(0, None)], [(0, 10), (None, 50)]])
def test_without_start_or_end_there_is_no_goodput(times: list[tuple[float | None, float | None]]) -> None:
    assert divide_wall_time(attempts(*times), STEADY, steps=20, earlier_steps=0, mean_of=1) is None
    assert divide_wall_time(attempts((0, 50)), None, steps=4, earlier_steps=0, mean_of=1) is None
