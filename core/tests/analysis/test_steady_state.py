"""The steady state of synthetic runs: warm-up, spikes, drift and noise."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import pytest

from llmb.analysis.steady_state import SteadyState, find_steady_state
from llmb.values.steps import Step

WARM_UP = [44.8, 24.7, 14.7, 12.7, 11.2]


def steady_state(times_s: Sequence[float | None], first: int = 0) -> SteadyState:
    found = find_steady_state([Step(step=first + at, time_s=time_s) for at, time_s in enumerate(times_s)])
    assert found
    return found


def noisy(count: int, noise: float, *, mean: float = 10.0, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, noise * mean) for _ in range(count)]


def test_the_steady_state_begins_after_the_warm_up() -> None:
    found = steady_state([*WARM_UP, *[10.0] * 15])
    assert (found.first, found.last, found.count) == (5, 19, 15)
    assert (found.step_time_s, found.step_time_std_s, found.drift, found.spike_share) == (10, 0, 0, 0)
    assert (found.spikes, found.spike_period) == ((), None)


def test_equal_steps_are_steady_from_the_first() -> None:
    assert steady_state([10.0] * 8).first == 0


def test_at_least_half_of_the_steps_count() -> None:
    falling = [100.0 - step for step in range(20)]
    assert steady_state(falling).first == 10


@pytest.mark.parametrize("times_s", [[], [10.0] * 7, [10.0] * 7 + [None, math.nan, 0.0, math.inf]])
def test_fewer_than_eight_step_times_have_no_steady_state(times_s: Sequence[float | None]) -> None:
    assert find_steady_state([Step(step=at, time_s=time_s) for at, time_s in enumerate(times_s)]) is None


def test_steps_without_a_time_are_left_out() -> None:
    assert steady_state([None, *[10.0] * 8, math.nan]).last == 8


def test_spikes_are_listed_with_their_cost_and_do_not_change_the_mean() -> None:
    times_s = [10.0] * 50
    for step in (12, 22, 32, 42):
        times_s[step] = 15.0
    found = steady_state(times_s)
    assert [(spike.step, spike.time_s) for spike in found.spikes] == [(12, 15), (22, 15), (32, 15), (42, 15)]
    assert (found.step_time_s, found.spike_period) == (10, 10)
    assert found.spike_share == pytest.approx(20 / 520)


@pytest.mark.parametrize(
    ("spikes", "period"),
    [((35, 55), None), ((35, 45, 55), 10), ((30, 41, 50, 61), 11), ((30, 42, 50, 65), None), ((35, 45, 68), None)],
)
def test_three_or_more_spikes_at_equal_distances_have_a_period(spikes: Sequence[int], period: int | None) -> None:
    times_s = [10.0] * 70
    for step in spikes:
        times_s[step] = 30.0
    assert steady_state(times_s).spike_period == period


def test_a_step_within_three_percent_is_no_spike() -> None:
    times_s = [10.0] * 30
    times_s[20] = 10.29
    assert not steady_state(times_s).spikes
    times_s[20] = 10.31
    assert [spike.step for spike in steady_state(times_s).spikes] == [20]


@pytest.mark.parametrize(
    ("times_s", "spikes"),
    [
        ((20.0, 0.1), []),  # one step late, the next one immediately
        ((0.1, 20.0), []),
        ((29.8, 0.1, 0.1), []),
        ((25.0, 0.1), [15.1]),
        ((20.0, 0.1, 15.0), [15.0]),
        ((20.0, 10.0, 0.1), [20.0]),  # they are no neighbours
    ],
)
def test_a_step_that_was_printed_late_is_no_spike(times_s: Sequence[float], spikes: Sequence[float]) -> None:
    found = steady_state([10.0] * 20 + [*times_s] + [10.0] * 20)
    assert [spike.time_s for spike in found.spikes] == pytest.approx(spikes)
    assert found.step_time_s == 10


def test_a_step_time_that_was_printed_too_early_does_not_change_the_mean() -> None:
    times_s = noisy(50, 0.005)
    usual = steady_state(times_s)
    times_s[40] = 0.002
    found = steady_state(times_s)
    assert found.step_time_s == pytest.approx(usual.step_time_s, rel=1e-3)
    assert found.relative_noise(1) == pytest.approx(usual.relative_noise(1), rel=0.1)


def test_steps_of_varying_length_are_no_dips() -> None:
    times_s = [2.0 if step % 2 else 0.6 for step in range(50)]
    assert steady_state(times_s).step_time_s == pytest.approx(1.3)


def test_noise_alone_makes_no_spike() -> None:
    assert not steady_state(noisy(200, 0.05)).spikes


def test_a_slow_drift_is_reported() -> None:
    assert steady_state([10 + 0.01 * step for step in range(100)]).drift == pytest.approx(0.04, abs=0.02)


def test_the_noise_of_a_mean_falls_with_the_number_of_steps() -> None:
    found = steady_state(noisy(2000, 0.02))
    assert found.relative_noise(1) == pytest.approx(0.02, rel=0.1)
    assert found.relative_noise(100) == pytest.approx(0.002, rel=0.15)


def test_correlated_steps_count_as_fewer() -> None:
    times_s, error = [], 0.0
    for independent in noisy(4000, 0.01, mean=1.0):
        error = 0.8 * error + (independent - 1)
        times_s.append(10 * (1 + error))
    found = steady_state(times_s)
    assert found.autocorrelation == pytest.approx(0.8, abs=0.05)
    assert found.relative_noise(100) == pytest.approx(3 * found.relative_noise(1) / 10, rel=0.2)


def test_the_noise_of_drifting_steps_is_at_least_half_of_the_drift() -> None:
    rising = [10 + 0.02 * step for step in range(100)]
    found = steady_state(rising)
    assert found.drift > 0.02
    assert found.relative_noise(10**6) == pytest.approx(found.drift / 2)


def kinds_of_warm_up(kind: int, count: int) -> list[float]:
    """Return relative step times: a compiling first step, exponential, stepwise and linear decay, or none."""
    exponential = [1 + 2 * math.exp(-step / (count / 20)) for step in range(count)]
    stepwise = [1.4 if step < count // 6 else 1.0 for step in range(count)]
    linear = [max(1.0, 1.5 - step / (count / 4)) for step in range(count)]
    return [[20.0, *[1.0] * (count - 1)], exponential, stepwise, linear, [1.0] * count][kind]


@pytest.mark.parametrize(("count", "noise", "most"), [(20, 0.02, 0.07), (50, 0.02, 0.04), (200, 0.01, 0.0)])
def test_few_means_are_off_by_more_than_a_percent(count: int, noise: float, most: float) -> None:
    draw, off, runs = random.Random(7), 0, 300
    for run in range(runs):
        shape = kinds_of_warm_up(run % 5, count)
        found = steady_state([10 * factor * (1 + draw.gauss(0, noise)) for factor in shape])
        off += abs(found.step_time_s / 10 - 1) > 0.01
    assert off / runs <= most


def cpu_seconds(count: int) -> float:
    """Return the CPU time of one search among so many steps. Other processes may disturb the measurement."""
    steps = [Step(step=at, time_s=time_s) for at, time_s in enumerate(noisy(count, 0.01))]
    begin = time.process_time()
    find_steady_state(steps)
    return time.process_time() - begin


def test_ten_times_as_many_steps_do_not_take_a_hundred_times_as_long() -> None:
    assert any(cpu_seconds(30_000) < 40 * cpu_seconds(3_000) for _ in range(10))
