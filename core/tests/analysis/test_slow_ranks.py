"""Slow ranks and hosts: what is named, what is not, and the rate of false alarms."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from llmb.analysis.slow_ranks import compare_ranks
from llmb.values.steps import RankTimes

STEPS = 20


def processes(
    count: int, seed: int = 0, *, step: float = 0.01, rank: float = 0.005, slower: Callable[[int], float] = lambda _: 0
) -> list[RankTimes]:
    """Return ranks of 8 per host with this noise per step and per rank, and the slowdown of each."""
    noise = random.Random(seed)
    common = [noise.gauss(1, 0.02) for _ in range(STEPS)]
    made = []
    for number in range(count):
        own = noise.gauss(1, rank) * (1 + slower(number))
        times = {index: each * own * noise.gauss(1, step) for index, each in enumerate(common)}
        made.append(RankTimes(number, f"node{number // 8}", times))
    return made


@pytest.mark.parametrize("rank", [0.0, 0.005, 0.02])
@pytest.mark.parametrize("count", [4, 8, 16, 64])
def test_at_most_two_percent_of_equal_systems_have_a_slow_rank(count: int, rank: float) -> None:
    runs = 400 if count < 64 else 100
    alarms = sum(bool(_slow(processes(count, seed, rank=rank))) for seed in range(runs))
    assert alarms <= 0.02 * runs + 2 * (0.02 * runs) ** 0.5  # two standard deviations of a count


def _slow(made: list[RankTimes]) -> tuple[object, ...]:
    found = compare_ranks(made)
    assert found is not None
    return (*found.slow_ranks, *found.slow_hosts)


@pytest.mark.parametrize(("count", "slowdown"), [(8, 0.1), (64, 0.05), (512, 0.05)])
def test_a_slow_rank_is_named_with_its_excess_and_the_gain(count: int, slowdown: float) -> None:
    found = compare_ranks(processes(count, slower=lambda number: slowdown * (number == 5)))
    assert found is not None
    [slow] = found.slow_ranks
    assert (slow.rank, slow.host, found.ranks, found.slow_hosts) == (5, "node0", count, ())
    assert slow.excess == pytest.approx(slowdown, abs=0.02)
    assert 0.3 * slowdown < found.gain < 1.2 * slowdown


def test_a_slow_host_is_named() -> None:
    found = compare_ranks(processes(64, slower=lambda number: 0.06 * (number // 8 == 3)))
    assert found is not None
    [slow] = found.slow_hosts
    assert (slow.host, slow.ranks) == ("node3", 8)
    assert {each.host for each in found.slow_ranks} == {"node3"}
    assert found.gain == pytest.approx(0.05, abs=0.02)


def test_one_long_step_of_a_rank_makes_no_slow_rank() -> None:
    made = processes(16)
    made[3] = RankTimes(3, "node0", {**made[3].times_s, 12: 60.0})
    assert _slow(made) == ()


def test_equal_times_make_no_slow_rank() -> None:
    assert _slow([RankTimes(number, None, dict.fromkeys(range(STEPS), 1.0)) for number in range(8)]) == ()


@pytest.mark.parametrize(("count", "steps"), [(3, STEPS), (8, 7)])
def test_few_ranks_or_steps_are_not_compared(count: int, steps: int) -> None:
    made = [RankTimes(each.rank, each.host, dict([*each.times_s.items()][:steps])) for each in processes(count)]
    assert compare_ranks(made) is None


def test_only_common_steps_are_compared() -> None:
    made = processes(8)
    made[0] = RankTimes(0, "node0", {step + 5: time for step, time in made[0].times_s.items()})
    found = compare_ranks(made)
    assert found is not None
    assert found.steps == 14  # of 15 common ones, without the first tenth
