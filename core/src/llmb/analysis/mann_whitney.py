"""The rank test of Mann and Whitney, which decides whether two groups of values differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def mann_whitney_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the probability that equal distributions give a rank sum as extreme as that of ``a``. Ties are exact."""
    ranks = _doubled_ranks([*a, *b])
    observed, expected = sum(ranks[: len(a)]), len(a) * sum(ranks) / len(ranks)
    sums = _count_rank_sums(ranks, len(a))
    extreme = sum(count for total, count in sums.items() if abs(total - expected) >= abs(observed - expected) - 1e-9)
    return extreme / sum(sums.values())


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value. Equal values share their mean rank, so twice the rank is an integer."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, start=1)))}
    counts = Counter(ordered)
    return [2 * first[value] + counts[value] - 1 for value in values]


def _count_rank_sums(ranks: Sequence[int], size: int) -> Counter[int]:
    """Return how many choices of ``size`` ranks have each sum."""
    sums: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(size))]
    for rank in ranks:
        for chosen in range(size, 0, -1):
            for total, count in sums[chosen - 1].items():
                sums[chosen][total + rank] += count
    return sums[size]
