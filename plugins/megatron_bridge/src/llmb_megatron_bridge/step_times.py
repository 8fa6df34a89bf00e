"""Which step a line without a number belongs to."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import NamedTuple

from llmb import Step

_LOOK_AHEAD = 8
"""How many lines of one kind may have lost their counterpart before those that have one are no longer found."""

_WAITING = 4096
"""Steps that wait for their TFLOP/s: in logs of ranks apart, those of a whole benchmark; Megatron-LM prints none."""


class StepTime(NamedTuple):
    """What rank 0 prints: seconds, and TFLOP/s per GPU, of which the digits are kept until they are wanted."""

    time_s: float
    tflops_per_gpu: bytes

    def may_be(self, time_s: float) -> bool:
        """Whether it is the same step, by its time: two decimals here, and clocks of two ranks."""
        return abs(self.time_s - time_s) <= 0.01 + 0.05 * time_s


Printed = tuple[int, float, bytes]
"""A step's number, its seconds, and the text that it was printed in."""


class StepTimes:
    """Joins the two kinds of line, each of which comes in the order of the steps, but either of which may be ahead.

    The oldest that agree in their time belong together; what is older than they are has lost its counterpart. (Where
    two steps agree so well that they could be confused, their TFLOP/s, which follow from the time, are the same.)
    """

    def __init__(self) -> None:
        self._times: deque[StepTime] = deque()
        self._steps: deque[Printed] = deque(maxlen=_WAITING)
        self._last: int | None = None

    def take(self, number: int, time_s: float) -> bytes | None:
        """The TFLOP/s that were printed before this step; null, if they are yet to come: then let it `wait`."""
        if self._last is not None and number <= self._last:
            self._steps.clear()  # another run has begun
        self._last = number
        for place, time in enumerate(islice(self._times, _LOOK_AHEAD)):
            if time.may_be(time_s):
                for _ in range(place + 1):
                    self._times.popleft()
                return time.tflops_per_gpu
        return None

    def wait(self, step: Printed) -> None:
        """A step whose TFLOP/s are yet to come."""
        self._steps.append(step)

    def add(self, time: StepTime) -> Printed | None:
        """The step that this belongs to, if it was printed before."""
        for place, step in enumerate(islice(self._steps, _LOOK_AHEAD)):
            if time.may_be(step[1]):
                for _ in range(place + 1):
                    self._steps.popleft()
                return step
        self._times.append(time)
        return None

    def close(self) -> list[Step]:
        """Where no step had a number: all of them, counted from 1."""
        if self._last is not None:
            return []
        return [
            Step(step=number, time_s=time.time_s, tflops_per_gpu=float(time.tflops_per_gpu))
            for number, time in enumerate(self._times, start=1)
        ]
