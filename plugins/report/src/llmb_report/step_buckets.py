"""The step times of many runs and steps, condensed to what a plot can show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import attrs

from llmb import ReportedRun

MAX_STEPS = 500
"""Steps of a run up to which each step is a point. More are put into buckets."""

BUCKETS = 200


@attrs.frozen
class MeasuredStep:
    """One measured step of a run."""

    step: int
    time_s: float


@attrs.frozen(kw_only=True)
class Bucket:
    """Neighbouring steps ``first`` to ``last``: low, middle and high step time (s)."""

    first: int
    last: int
    low_s: float
    median_s: float
    high_s: float

    @property
    def middle(self) -> float:
        """The position of the bucket on the axis of steps."""
        return (self.first + self.last) / 2


def step_times(run: ReportedRun) -> list[MeasuredStep]:
    """Return the measured steps of a run, in the order of their numbers."""
    pairs = zip(run.steps.get("step", ()), run.steps.get("time_s", ()), strict=True)
    return [
        MeasuredStep(int(step), time_s)
        for step, time_s in pairs
        if step is not None and time_s is not None and 0 < time_s < math.inf
    ]


def put_into_buckets(steps: Sequence[MeasuredStep], most: int, *, low: float = 0.0, high: float = 1.0) -> list[Bucket]:
    """Return at most ``most`` buckets of equally many step numbers, with the ``low`` and ``high`` quantiles of each."""
    if not steps:
        return []
    first, last = min(each.step for each in steps), max(each.step for each in steps)
    size = max(1, math.ceil((last - first + 1) / most))
    members: dict[int, list[float]] = {}
    for each in steps:
        members.setdefault((each.step - first) // size, []).append(each.time_s)
    return [
        Bucket(
            first=first + index * size,
            last=min(first + (index + 1) * size - 1, last),
            low_s=quantile(times_s, low),
            median_s=statistics.median(times_s),
            high_s=quantile(times_s, high),
        )
        for index, times_s in sorted(members.items())
    ]


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, interpolated between neighbours."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
