"""The measuring window: the steps that count, and their mean step time."""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from llmb.analysis.valid_range import STEP_TIME_S, TFLOPS_PER_GPU, StepTime, finite_or_none, possible
from llmb.values.steps import Step, find_log_interval
from llmb.values.types.numbers import PositiveInt

if TYPE_CHECKING:  # listing runs does not load the classes of specs
    from llmb.values.recipe import Window

UNUSUAL = 1.5
"""Least ratio of an outlier to the median, or of the median to an outlier. A step with a checkpoint exceeds it."""

NOT_PRINTED = ("complete", "mean_of", "printed", "first", "last")
"""Fields of `Summary` that are not part of its JSON."""

ENOUGH = 5
"""Least number of step times whose median is typical, although the first steps are slow."""

TOO_SHORT = 0.5
"""A step with less than this share of the mean step time was printed early, so that its rate is too high."""


@attrs.frozen(kw_only=True)
class MeasuredWindow:
    """A complete window: its first and last printed step, and the mean and sample standard deviation (s) of ``count``.

    ``step_time_std_s`` is None for one step, and if the step time is derived from logged rates.
    """

    first: int
    last: int
    count: PositiveInt
    step_time_s: StepTime
    step_time_std_s: float | None


@attrs.frozen(kw_only=True)
class Summary:
    """Means and sample standard deviations of step time (s) and TFLOP/s per GPU over a window.

    ``count`` is the number of step times in the mean, ``printed`` the number of steps of the window in the log, and
    ``first`` and ``last`` are their numbers. ``complete`` is True if the log covers the window; see `summarise`.
    ``mean_of`` is the largest number of steps over which the framework averaged a printed time.
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
        """Return the object that ``--json`` prints."""
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
    """Summarise the steps of a run, in the order of their numbers, over a window.

    ``window`` is "last", or the first and last step, both included, in the framework's own numbers. Times that are
    None, NaN or out of range are left out of the mean. The standard deviation is that of a sample (n - 1), and None for
    a single step.

    A window is complete if its last step is measured and no step is missing. A step is missing if a gap between two
    printed steps, or between a printed step and an edge of the window, is wider than the log interval.
    """
    numbers = [step.step for step in steps]
    chosen = [steps[index] for index in _indices(numbers, window)]
    times, tflops = known_times_s(chosen), _known(possible(step.tflops_per_gpu, TFLOPS_PER_GPU) for step in chosen)
    return Summary(
        window=window,
        count=len(times),
        step_time_s=mean_of_known(times),
        step_time_std_s=_deviation(times),
        tflops_per_gpu=_mean_tflops(chosen),
        tflops_per_gpu_std=_deviation(tflops),
        mean_of=max((step.mean_of or 1 for step in chosen), default=1),
        printed=len(chosen),
        first=chosen[0].step if chosen else None,
        last=chosen[-1].step if chosen else None,
        complete=bool(chosen) and is_measured(chosen[-1], steps) and _without_gaps(numbers, window),
    )


def outlier_median_s(steps: Iterable[Step], summary: Summary) -> float | None:
    """Return the median step time (s) of a run if the window is a single step that deviates far from the median.

    Return None for other windows, and if the run has too few steps for a typical median.
    """
    one_step = summary.window == "last" or summary.window[0] == summary.window[1]
    if not one_step or summary.step_time_s is None:
        return None
    times = known_times_s(steps)
    median_s = statistics.median(times) if len(times) >= ENOUGH else 0.0
    usual = median_s / UNUSUAL <= summary.step_time_s <= median_s * UNUSUAL
    return median_s if median_s > 0 and not usual else None


def is_measured(last: Step, log: Iterable[Step]) -> bool:
    """Check whether the last step has a time, or a rate if no step of the log has a time."""
    if known_times_s([last]):
        return True
    rates = map(finite_or_none, (last.tflops_per_gpu, last.tokens_per_s_per_gpu))
    has_rate = any(rate is not None and rate > 0 for rate in rates)
    return has_rate and all(finite_or_none(step.time_s) is None for step in log)


def _indices(numbers: Sequence[int], window: Window) -> range:
    """Return the indices of the window's steps."""
    if window == "last":
        return range(len(numbers))[-1:]
    first, last = window
    return range(bisect_left(numbers, first), bisect_right(numbers, last))


def _without_gaps(numbers: Sequence[int], window: Window) -> bool:
    if window == "last":
        return True
    first, last = window
    edges = [first - 1, *(numbers[index] for index in _indices(numbers, window)), last + 1]
    widest = find_log_interval(numbers)
    return all(after - before <= widest for before, after in itertools.pairwise(edges))


def known_times_s(steps: Iterable[Step]) -> list[float]:
    """Return the possible step times (s) of the steps that have one."""
    return _known(possible(step.time_s, STEP_TIME_S) for step in steps)


def _mean_tflops(steps: Iterable[Step]) -> float | None:
    """Return the mean TFLOP/s per GPU of the steps that have it, or None.

    It is the mean of the printed rates, as publishers state it. But an asynchronous framework may print one step late
    and the next one immediately, with a rate that no chip reaches. Then the mean is the work of all steps divided by
    their time.
    """
    rated = [(step, rate) for step in steps if (rate := possible(step.tflops_per_gpu, TFLOPS_PER_GPU)) is not None]
    rates, times_s = [rate for _, rate in rated], known_times_s(step for step, _ in rated)
    if not rates:
        return None
    is_early = len(times_s) == len(rates) and min(times_s) < TOO_SHORT * statistics.fmean(times_s)
    return statistics.fmean(rates, weights=times_s if is_early else None)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None, or None if there is no such value."""
    known = _known(values)
    return statistics.fmean(known) if known else None


def _deviation(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
