"""Pairing of Megatron-Bridge's two lines per step, of which one has no step number."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from llmb import Step

_LOOK_AHEAD = 8
"""Lines of one kind that may have lost their counterpart before lines with a counterpart are not found."""

_CHANGES = 3
"""Least number of changed values that shows that every line is printed twice."""

_WAITING = 4096
"""Steps that wait for their TFLOP/s. In logs of separate ranks, these are all steps; Megatron-LM prints no TFLOP/s."""


class StepTimeLine(NamedTuple):
    """Line of rank 0: seconds, and the rates that the line contains, by the names of a Step."""

    time_s: float
    rates: Mapping[str, float]


class StepLinePairs:
    """Pairs of the two kinds of lines. Each kind is in the order of the steps, and either one may be ahead.

    The oldest lines whose times fit belong together. Older lines have lost their counterpart. (If the times of two
    steps are too close to distinguish the steps, their TFLOP/s are equal too, because TFLOP/s follow from the time.)
    """

    def __init__(self) -> None:
        self._times: deque[StepTimeLine] = deque()
        self._steps: deque[Step] = deque(maxlen=_WAITING)
        self._last: int | None = None

    def take_time(self, number: int, time_s: float) -> StepTimeLine | None:
        """Return the line of rank 0 that was printed before a step, or None."""
        if self._last is not None and number <= self._last:
            self._steps.clear()  # another run began
        self._last = number
        for place, time in enumerate(islice(self._times, _LOOK_AHEAD)):
            if _fit(time.time_s, time_s):
                _pop_left(self._times, place + 1)
                return time
        return None

    def keep_step(self, step: Step) -> None:
        """Keep a step whose TFLOP/s are not printed yet."""
        self._steps.append(step)

    def take_step(self, time: StepTimeLine) -> Step | None:
        """Return the step that was printed before a line of rank 0, or None and keep the line."""
        for place, step in enumerate(islice(self._steps, _LOOK_AHEAD)):
            if step.time_s is not None and _fit(time.time_s, step.time_s):
                _pop_left(self._steps, place + 1)
                return step
        self._times.append(time)
        return None

    def close(self) -> list[Step]:
        """Return steps counted from 1 if the log had no step number at all."""
        if self._last is not None:
            return []
        times = [*self._times]
        times = times[::2] if _is_printed_twice(times) else times
        return [
            Step(step=number, time_s=time.time_s, **time.rates)  # type: ignore[arg-type]  # names of floats
            for number, time in enumerate(times, start=1)
        ]


def _is_printed_twice(times: Sequence[StepTimeLine]) -> bool:
    """Check whether each line of a log is printed twice, as by two handlers of Python's logging.

    Steps of a log with few lines, or with few different times, may be equal in pairs by chance.
    """
    first, second = times[::2], times[1::2]
    changes = sum(time != before for before, time in pairwise(first))
    return first == second and changes >= _CHANGES


def _fit(rounded_s: float, time_s: float) -> bool:
    """Check whether both may be times of the same step: the first has two decimals and another rank's clock."""
    return abs(rounded_s - time_s) <= 0.01 + 0.05 * time_s


def _pop_left(queue: deque[Any], count: int) -> None:
    for _ in range(count):
        queue.popleft()
