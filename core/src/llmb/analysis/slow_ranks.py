"""Ranks and hosts that are slower than the rest, by more than the noise.

The excess of a rank is the median, over the steps, of its step time relative to the median of all ranks at that step.
The noise is the spread of the excesses of all ranks, so a system on which all ranks differ has no slow rank. The limit
is highest for few ranks, because their spread is uncertain. In simulations of 4 to 512 equal ranks, at most 2 % of the
runs have a rank that is called slow.
"""

import statistics
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from llmb.analysis.steady_state import MIN_STEPS, median_and_deviation
from llmb.values.steps import RankTimes

MIN_RANKS: Final = 4
"""Ranks, or hosts, without which their spread is unknown."""

MIN_EXCESS: Final = 0.01
"""The excess below which a rank is not called slow, however small the noise is."""

ERROR_RATE: Final = 0.002
"""The probability of a false alarm for normally distributed excesses of which the spread is known."""

FEW_RANKS: Final = 8
"""Factor of the uncertainty of the spread for few ranks."""

K = TypeVar("K", bound=Hashable)


@attrs.frozen(kw_only=True)
class SlowRank:
    """A process that is slower than the median of all by ``excess``, a fraction."""

    rank: int | None
    host: str | None
    step_time_s: float
    excess: float


@attrs.frozen(kw_only=True)
class SlowHost:
    """A host of which the median rank is slower than the median of all hosts by ``excess``, a fraction."""

    host: str
    ranks: int
    excess: float


@attrs.frozen(kw_only=True)
class RankComparison:
    """Comparison of the step times of ``ranks`` processes over ``steps`` steps.

    ``step_time_s`` is the median. ``gain`` is the fraction of the job's step time, which is that of its slowest rank,
    that the job would gain without the slow ranks and hosts.
    """

    ranks: int
    steps: int
    step_time_s: float
    slow_ranks: tuple[SlowRank, ...] = ()
    slow_hosts: tuple[SlowHost, ...] = ()
    gain: float = 0.0


def compare_ranks(processes: Sequence[RankTimes]) -> RankComparison | None:
    """Return the comparison of processes, or None if fewer than 4 have 8 steps in common."""
    if len(processes) < MIN_RANKS:
        return None
    steps = common_steps([each.times_s for each in processes])
    if len(steps) < MIN_STEPS:
        return None
    medians = {step: statistics.median(each.times_s[step] for each in processes) for step in steps}
    excesses = [statistics.median(each.times_s[step] / medians[step] - 1 for step in steps) for each in processes]
    slow = _find_slow(dict(enumerate(excesses)))
    by_host = defaultdict[str, list[int]](list)
    for index, each in enumerate(processes):
        if each.host:
            by_host[each.host].append(index)
    slow_hosts = _find_slow({host: statistics.median(excesses[i] for i in ranks) for host, ranks in by_host.items()})
    left_out = {*slow, *(index for host in slow_hosts for index in by_host[host])}
    kept = [each for index, each in enumerate(processes) if index not in left_out]
    return RankComparison(
        ranks=len(processes),
        steps=len(steps),
        step_time_s=statistics.median(medians.values()),
        slow_ranks=tuple(
            SlowRank(
                rank=processes[index].rank,
                host=processes[index].host,
                step_time_s=statistics.median(processes[index].times_s[step] for step in steps),
                excess=excess,
            )
            for index, excess in slow.items()
        ),
        slow_hosts=tuple(
            SlowHost(host=host, ranks=len(by_host[host]), excess=excess) for host, excess in slow_hosts.items()
        ),
        gain=1 - _job_time_s(kept, steps) / _job_time_s(processes, steps) if left_out else 0.0,
    )


def explain_missing_times(comparison: RankComparison | None, gpus: int, verdict: str | None, setting: str) -> str:
    """Return how to compare the ranks of a run that may be slow, or "" if there is no need or no such setting."""
    if comparison or gpus < MIN_RANKS or verdict == "pass" or not setting:
        return ""
    return f"slow ranks are unknown, because not all ranks print their step times; set {setting}"


def common_steps(times_s: Sequence[Mapping[int, float]]) -> list[int]:
    """Return the steps that all have a time for, without the first tenth, in which processes compile and connect."""
    steps = sorted(set.intersection(*map(set, times_s)))
    return steps[len(steps) // 10 :]


def _find_slow(excesses: Mapping[K, float]) -> dict[K, float]:
    """Return those whose excess over the median is beyond the noise, the slowest first. With fewer than 4, none is."""
    count = len(excesses)
    if count < MIN_RANKS:
        return {}
    middle, noise = median_and_deviation(list(excesses.values()))
    deviations = statistics.NormalDist().inv_cdf(1 - ERROR_RATE / count) * (1 + FEW_RANKS / (count - 1))
    limit = max(MIN_EXCESS, deviations * noise)
    found = [(key, excess - middle) for key, excess in excesses.items() if excess - middle > limit]
    return dict(sorted(found, key=lambda each: -each[1]))


def _job_time_s(processes: Sequence[RankTimes], steps: Sequence[int]) -> float:
    """Return the median step time of a job whose steps take as long as their slowest rank."""
    return statistics.median(max(each.times_s[step] for each in processes) for step in steps)
