"""The mean step time over a measuring window."""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from llmb.analysis.valid_range import STEP_TIME_S, TFLOPS_PER_GPU, possible, stated
from llmb.values.recipe import Window
from llmb.values.steps import NumberedSteps, Step, rhythm

UNUSUAL = 1.5
"""Times the median, or its part: the steps of a steady run differ by less, one with a checkpoint by more."""

NOT_PRINTED = ("complete", "mean_of", "printed", "first", "last")
"""Fields of `Summary` that are not part of its JSON."""

ENOUGH = 5
"""Steps, the first slow ones among them, of which the median is a usual one."""


@attrs.frozen(kw_only=True)
class MeasuredWindow:
    """A complete window: its first and last printed step, and the mean and sample standard deviation (s) of ``count``.

    ``step_time_std_s`` is None for one step, and if the step time is derived from logged rates.
    """

    first: int
    last: int
    count: int
    step_time_s: float
    step_time_std_s: float | None


@attrs.frozen(kw_only=True)
class Summary:
    """Means and sample standard deviations over a window; seconds and TFLOP/s per GPU.

    ``count`` is the number of steps in the mean of the step time, and ``printed`` of those in the log, with a time or
    without. ``complete`` tells whether the whole window was measured; see `summarise`. ``mean_of`` is over how many
    steps, at most, the framework averaged a printed time.
    """

    window: Window
    count: int
    step_time_s: float | None
    step_time_std_s: float | None
    tflops_per_gpu: float | None
    tflops_per_gpu_std: float | None
    complete: bool
    mean_of: int = 1
    printed: int = 0
    first: int | None = None
    last: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        table = attrs.asdict(self, filter=lambda field, _value: field.name not in NOT_PRINTED)
        return table | {"window": self.window if self.window == "last" else list(self.window)}

    def measured(self, step_time_s: float | None) -> MeasuredWindow | None:
        """Return the window, or None if it is incomplete. ``step_time_s`` may be derived from logged rates."""
        if not self.complete or self.first is None or self.last is None or step_time_s is None:
            return None
        return MeasuredWindow(
            first=self.first,
            last=self.last,
            count=self.count or self.printed,
            step_time_s=step_time_s,
            step_time_std_s=self.step_time_std_s,
        )


def summarise(steps: Sequence[Step], window: Window) -> Summary:
    """The steps of a run (in order, a later one of the same number replacing the earlier) over its window.

    ``window`` is "last", or the first and last step, both included, in the framework's own numbers. A step without a
    time (null, NaN, or none that a step can take, such as 0) is left out of the mean. The standard deviation is the
    sample's (n - 1), null for one step.

    A window is complete when the log printed it from edge to edge at its own rhythm, and its last step has a time; in
    a log that states rates in the place of times, a rate. No step within the window, nor an edge of it, may be further
    from the next one printed than `rhythm` of the whole log.
    """
    numbers = steps.numbers if isinstance(steps, NumberedSteps) else [step.step for step in steps]
    chosen = [steps[place] for place in _places(numbers, window)]
    times, tflops = _times_s(chosen), _known(possible(step.tflops_per_gpu, TFLOPS_PER_GPU) for step in chosen)
    return Summary(
        window=window,
        count=len(times),
        step_time_s=_mean(times),
        step_time_std_s=_deviation(times),
        tflops_per_gpu=_mean(tflops),
        tflops_per_gpu_std=_deviation(tflops),
        mean_of=max((step.mean_of or 1 for step in chosen), default=1),
        printed=len(chosen),
        first=chosen[0].step if chosen else None,
        last=chosen[-1].step if chosen else None,
        complete=bool(chosen) and is_measured(chosen[-1], steps) and _without_gaps(numbers, window),
    )


def outlier_median_s(steps: Iterable[Step], summary: Summary) -> float | None:
    """The median step time (s) of a run, where its window is one step that took far longer, or far less, than that.

    Null for any other window, for a usual step, and for a run of too few steps to tell.
    """
    one_step = summary.window == "last" or summary.window[0] == summary.window[1]
    if not one_step or summary.step_time_s is None:
        return None
    times = _times_s(steps)
    median_s = statistics.median(times) if len(times) >= ENOUGH else 0.0
    usual = median_s / UNUSUAL <= summary.step_time_s <= median_s * UNUSUAL
    return median_s if median_s > 0 and not usual else None


def is_measured(last: Step, log: Iterable[Step]) -> bool:
    """Whether the speed of this step is known, in what the log states of all."""
    if _times_s([last]):
        return True
    rates = (stated(last.tflops_per_gpu), stated(last.tokens_per_s_per_gpu))
    return any(rate is not None and rate > 0 for rate in rates) and all(stated(step.time_s) is None for step in log)


def _places(numbers: Sequence[int], window: Window) -> range:
    """Where the numbers of the window stand."""
    if window == "last":
        return range(len(numbers))[-1:]
    first, last = window
    return range(bisect_left(numbers, first), bisect_right(numbers, last))


def _without_gaps(numbers: Sequence[int], window: Window) -> bool:
    if window == "last":
        return True
    first, last = window
    edges = [first - 1, *(numbers[place] for place in _places(numbers, window)), last + 1]
    widest = rhythm(numbers)
    return all(after - before <= widest for before, after in itertools.pairwise(edges))


def _times_s(steps: Iterable[Step]) -> list[float]:
    return _known(possible(step.time_s, STEP_TIME_S) for step in steps)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
