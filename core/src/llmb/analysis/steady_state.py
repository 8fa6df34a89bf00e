"""The steady state of a run: the steps after the warm-up, found by MSER (White 1997) on clipped step times.

MSER drops as many first steps as minimise the standard error of the mean of the rest. Clipping limits the weight of
spikes, such as checkpoints, which would otherwise decide where the steady state begins.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import attrs

from llmb.analysis.valid_range import STEP_TIME_S, StepTime, possible
from llmb.values.steps import Step
from llmb.values.types.numbers import PositiveInt, number_type

MIN_STEPS = 8
"""Step times without which no steady state is found."""

MAD_TO_STD = 1.4826
"""The standard deviation of a normal distribution in median absolute deviations (MAD)."""

CLIP_DEVIATIONS, CLIP_SHARE = 5, 0.05
"""Limits of a clipped step time, in standard deviations and as a share of the median. The wider one applies."""

SPIKE_DEVIATIONS, SPIKE_SHARE = 6, 0.03
"""Distance of a spike above the median, in standard deviations and as a share. The larger one applies."""

DIP_SHARE = 0.1
"""Distance of a dip below the median, as a share, if it exceeds that of a spike.

A dip is no step time: for example, an asynchronous framework printed the step before it was over.
"""

EQUAL_GAPS = 0.25
"""The relative difference of two distances between spikes that count as equal."""

MAX_CORRELATION = 0.9
"""Upper limit of the correlation of neighbouring steps, so that few steps cannot make the noise infinite."""

STABLE_DRIFT = 0.02
"""The drift up to which the position of a window in the run does not matter."""

MIN_DIFFERENCE, DIFFERENCE_NOISES = 0.02, 3
"""Relative difference of a window from the steady state that matters, at least, and in units of the noise."""


Correlation = Annotated[
    float,
    number_type("0 to 0.9", lambda value: 0 <= value <= MAX_CORRELATION, minimum=0, maximum=MAX_CORRELATION),
]
"""The correlation of neighbouring steps in a record."""


@attrs.frozen(kw_only=True)
class Spike:
    """One steady step that took much longer than the others. ``time_s`` is without the time that neighbours lack."""

    step: int
    time_s: float


@attrs.frozen(kw_only=True)
class SteadyState:
    """Steps ``first`` to ``last``. Mean and standard deviation cover the ``count`` steps that are no spikes or dips.

    ``drift`` is the median step time of the second half over that of the first half, minus 1. ``spike_share`` is the
    share of the time that is lost to spikes; ``spike_period`` is their distance in steps if they are periodic.
    ``autocorrelation`` is the correlation of neighbouring steps, from 0 to 0.9.
    """

    first: int
    last: int
    count: PositiveInt
    step_time_s: StepTime
    step_time_std_s: float
    drift: float
    spikes: tuple[Spike, ...]
    spike_share: float
    spike_period: int | None
    autocorrelation: Correlation

    def relative_noise(self, count: int) -> float:
        """Return the standard error of the mean of ``count`` printed steps, relative to the mean.

        Correlated steps count as fewer. If the steps drift, the noise is at least half of the drift.
        """
        equivalent = (1 + self.autocorrelation) / (1 - self.autocorrelation)
        noise = self.step_time_std_s / self.step_time_s * math.sqrt(min(equivalent, count) / count)
        return max(noise, abs(self.drift) / 2) if abs(self.drift) > STABLE_DRIFT else noise

    def differs_from(self, step_time_s: float, count: int) -> bool:
        """Check whether a window with this mean of ``count`` steps does not represent the steady state."""
        difference = abs(step_time_s / self.step_time_s - 1)
        return difference > max(MIN_DIFFERENCE, DIFFERENCE_NOISES * self.relative_noise(count))

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``llmb parse --json`` prints."""
        return attrs.asdict(self, filter=lambda field, _value: field.name != "autocorrelation")


def find_steady_state(steps: Iterable[Step]) -> SteadyState | None:
    """Return the steady state of a run, or None if the log has fewer than 8 step times."""
    known = [(step.step, time_s) for step in steps if (time_s := possible(step.time_s, STEP_TIME_S)) is not None]
    if len(known) < MIN_STEPS:
        return None
    steady = known[_find_start([time_s for _, time_s in known]) :]
    times_s = [time_s for _, time_s in steady]
    middle, deviation = median_and_deviation(times_s)
    limit = middle + max(SPIKE_DEVIATIONS * deviation, SPIKE_SHARE * middle)
    dip = middle - max(SPIKE_DEVIATIONS * deviation, DIP_SHARE * middle)
    spikes = _find_spikes(steady, dip, middle, limit)
    usual = [time_s for time_s in times_s if dip <= time_s <= limit]
    mean = statistics.fmean(usual)
    errors = [time_s - mean for time_s in usual]
    squares = math.fsum(error * error for error in errors)
    half = len(times_s) // 2
    return SteadyState(
        first=steady[0][0],
        last=steady[-1][0],
        count=len(usual),
        step_time_s=mean,
        step_time_std_s=math.sqrt(squares / (len(usual) - 1)),
        drift=statistics.median(times_s[half:]) / statistics.median(times_s[:half]) - 1,
        spikes=spikes,
        spike_share=math.fsum(spike.time_s - mean for spike in spikes) / math.fsum(times_s),
        spike_period=_find_period([spike.step for spike in spikes]),
        autocorrelation=_autocorrelation(errors, squares),
    )


def _find_spikes(steady: Sequence[tuple[int, float]], dip: float, middle: float, limit: float) -> tuple[Spike, ...]:
    """Return the steps that took longer than the limit.

    An asynchronous framework may print one step late, and its neighbours immediately. The time that these lack to the
    median is therefore taken from the step that was printed late.
    """
    spikes: list[Spike] = []
    for is_usual, group in itertools.groupby(steady, lambda each: dip <= each[1] <= limit):
        steps = [] if is_usual else list(group)
        lacking_s = math.fsum(middle - time_s for _, time_s in steps if time_s < dip)
        for step, time_s in steps:
            if time_s > limit:
                taken_s = min(lacking_s, time_s - middle)
                lacking_s -= taken_s
                spikes.append(Spike(step=step, time_s=time_s - taken_s))
    return tuple(spike for spike in spikes if spike.time_s > limit)


def _find_start(times_s: Sequence[float]) -> int:
    """Return the index at which the steady state begins, at most half of the steps."""
    half = len(times_s) // 2
    middle, deviation = median_and_deviation(times_s[half:])
    reach = max(CLIP_DEVIATIONS * deviation, CLIP_SHARE * middle)
    least, start, mean, squares = math.inf, half, 0.0, 0.0
    for index in range(len(times_s) - 1, -1, -1):
        count = len(times_s) - index
        clipped = min(max(times_s[index], middle - reach), middle + reach)
        change = clipped - mean
        mean += change / count
        squares += change * (clipped - mean)
        squared_error = squares / count**2
        if index <= half and squared_error <= least:
            least, start = squared_error, index
    return start


def median_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return the median, and the standard deviation as far as the median absolute deviation shows it."""
    middle = statistics.median(values)
    return middle, MAD_TO_STD * statistics.median(abs(value - middle) for value in values)


def _find_period(steps: Sequence[int]) -> int | None:
    """Return the distance of three or more spikes that are equally far apart, else None.

    Spikes at steps that follow one another are no period.
    """
    gaps = [later - earlier for earlier, later in itertools.pairwise(steps)]
    if len(gaps) < 2:
        return None
    usual = statistics.median(gaps)
    is_periodic = round(usual) > 1 and all(abs(gap / usual - 1) <= EQUAL_GAPS for gap in gaps)
    return round(usual) if is_periodic else None


def _autocorrelation(errors: Sequence[float], squares: float) -> float:
    """Return the correlation of neighbouring steps, corrected for the bias of few steps."""
    if squares == 0:
        return 0.0
    products = math.fsum(error * following for error, following in itertools.pairwise(errors))
    return min(max(products / squares + 1 / len(errors), 0.0), MAX_CORRELATION)
