"""Change of the step time between two groups of runs, with a margin that separates the change from noise."""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import attrs

from llmb.analysis.margins import Group, margin_of_change
from llmb.analysis.verdict import Repeat, steady_states_of, windows_of

Call = Literal["slower", "faster", "none"]

MIN_VALUES = 4
"""Values per side without which the rank test cannot show a difference at 0.05."""

MAX_EXACT_WORK = 2000
"""Largest product of the values of the smaller side and of both sides for which the test is exact.

31 values per side take 0.1 s.
"""


@attrs.frozen(kw_only=True)
class Change:
    """Change from A to B as a fraction of A's step time. ``p`` is that of the rank test, None for few runs."""

    a_s: float
    b_s: float
    change: float
    margin: float
    call: Call
    p: float | None


def compare_repeats(a: Sequence[Repeat], b: Sequence[Repeat]) -> Change:
    """Compare the runs whose windows represent their steady states, or else all runs of a side.

    If all windows of a side are off, the steady states must show the same change.
    """
    kept_a, kept_b = ([repeat for repeat in side if not repeat.is_off] or side for side in (a, b))
    change = _compare(windows_of(kept_a), windows_of(kept_b))
    if any(repeat.is_off for repeat in (*kept_a, *kept_b)):
        steady = _compare(steady_states_of(kept_a), steady_states_of(kept_b))
        return change if steady.call == change.call else attrs.evolve(change, call="none")
    return change


def _compare(a: Group, b: Group) -> Change:
    change, margin = b.mean_s / a.mean_s - 1, margin_of_change(a, b)
    call: Call = "none" if abs(change) <= margin else "slower" if change > 0 else "faster"
    enough = min(len(a), len(b)) >= MIN_VALUES
    p = mann_whitney_p(a.times_s, b.times_s) if enough else None
    return Change(a_s=a.mean_s, b_s=b.mean_s, change=change, margin=margin, call=call, p=p)


def mann_whitney_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability that equal distributions give a rank sum as extreme as that of ``a``.

    Equal values share their mean rank. Each rank counts twice, so that it is an integer. The rank sum of many values
    is approximated by a normal distribution.
    """
    few, many = sorted((a, b), key=len)
    values = sorted([*few, *many])
    ranks = [bisect_left(values, value) + bisect_right(values, value) + 1 for value in (*few, *many)]
    expected = len(few) * statistics.fmean(ranks)
    distance = abs(sum(ranks[: len(few)]) - expected)
    if len(few) * len(values) > MAX_EXACT_WORK:
        variance = len(few) * len(many) / (len(values) - 1) * statistics.pvariance(ranks)
        return math.erfc(max(distance - 1, 0) / math.sqrt(2 * variance)) if variance else 1.0
    sums = _count_rank_sums(ranks, len(few))
    extreme = sum(count for total, count in sums.items() if abs(total - expected) >= distance - 1e-9)
    return extreme / sum(sums.values())


def _count_rank_sums(ranks: Sequence[int], size: int) -> Counter[int]:
    """Return how many choices of ``size`` ranks have each sum."""
    sums: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for rank in ranks:
        for chosen in range(size, 0, -1):
            for total, count in sums[chosen - 1].items():
                sums[chosen][total + rank] += count
    return sums[size]
