"""Margins of step times: the uncertainty of a mean of few runs, from their spread and the noise of their steps.

Two runs on a healthy system differ by some tenths of a percent, which the steps of one run cannot show. The spread of
runs therefore starts from 0.5 % with 3 degrees of freedom: 109 groups of repeated runs of MLPerf Training v5.1 have a
standard deviation of 0.11 % at the median, 0.7 % at p90 and 1.3 % at p95.
"""

import math
import statistics
from collections.abc import Sequence

import attrs

PRIOR_STD = 0.005
"""Relative standard deviation between runs that is assumed before any run is measured."""

PRIOR_FREEDOM = 3
"""Degrees of freedom of this assumption."""

# Quantiles of Student's t for 3 to 30 degrees of freedom; statistics has no t distribution, and scipy is large.
# fmt: off
T95 = (
    2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823, 1.7709, 1.7613, 1.7531, 1.7459,
    1.7396, 1.7341, 1.7291, 1.7247, 1.7207, 1.7171, 1.7139, 1.7109, 1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973,
)
T975 = (
    3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
    2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)
# fmt: on
Z95, Z975 = 1.645, 1.96
"""The same quantiles of the normal distribution."""


def t95(freedom: int) -> float:
    """Return the one-sided 95 % quantile of Student's t for at least 3 degrees of freedom."""
    return T95[freedom - 3] if freedom <= 30 else Z95 + 1.55 / freedom


def t975(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t for at least 3 degrees of freedom."""
    return T975[freedom - 3] if freedom <= 30 else Z975 + 2.45 / freedom


@attrs.frozen(kw_only=True)
class Group:
    """Step times of equal runs (s), one per run, each with the relative noise of its steps."""

    times_s: Sequence[float]
    noises: Sequence[float]

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def mean_s(self) -> float:
        """The mean of the runs."""
        return statistics.fmean(self.times_s)

    @property
    def squares(self) -> float:
        """The sum of the squared relative deviations from the mean."""
        mean_s = self.mean_s
        return sum((time_s / mean_s - 1) ** 2 for time_s in self.times_s)

    @property
    def noise_variance(self) -> float:
        """The mean squared noise."""
        return statistics.fmean(noise * noise for noise in self.noises)


def margin_of_mean(group: Group, *, more: int = 0) -> float:
    """Return the relative margin of the mean: its one-sided 95 % confidence limit.

    With ``more`` runs that spread like those of the group, the margin is that of the mean of all.
    """
    count = len(group) + more
    spread = _spread(group.squares, PRIOR_FREEDOM + len(group) - 1)
    noise = math.sqrt(group.noise_variance)
    return max(t95(PRIOR_FREEDOM + count - 1) * spread, Z95 * noise) / math.sqrt(count)


def margin_of_change(before: Group, after: Group) -> float:
    """Return the relative margin of the ratio of two means: its two-sided 95 % confidence limit."""
    freedom = PRIOR_FREEDOM + len(before) - 1 + len(after) - 1
    spread = _spread(before.squares + after.squares, freedom) * math.sqrt(1 / len(before) + 1 / len(after))
    noise = math.sqrt(before.noise_variance / len(before) + after.noise_variance / len(after))
    return max(t975(freedom) * spread, Z975 * noise)


def _spread(squares: float, freedom: int) -> float:
    """Return the relative standard deviation between runs, from the assumed one and the measured deviations."""
    return math.sqrt((PRIOR_FREEDOM * PRIOR_STD**2 + squares) / freedom)
