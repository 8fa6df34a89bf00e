"""Compute times of all ranks, which Megatron prints after a step with ``timing_log_option = "all"``."""

import re
from collections import defaultdict

import attrs

from llmb import Notice, Step

TIMERS = b" across ranks (ms):"
"""Part of the line before timers (Megatron-Core, ``core/timers.py``): the longest time, also the shortest, or all."""

SAVED = b"save-checkpoint "
"""The timer that follows each checkpoint."""

_SAVED_MS = re.compile(rb"\bsave-checkpoint \.+: \(?(?:\d{1,12}\.\d+, )?(\d{1,12}\.\d+)\)?\s*$")

COMPUTE = b"-compute:"
"""The end of the names of the timers whose sum is the compute time: forward-compute and backward-compute."""

RANK = b"rank "

_RANK_TIME = re.compile(rb"\brank +(\d{1,6}): (\d{1,12}\.\d+)\s*$")


def checkpoint_of(line: bytes) -> Notice | None:
    """Return the time of a checkpoint on the slowest rank, or None if the line has none."""
    saved = _SAVED_MS.search(line)
    return Notice(kind="checkpoint", time_s=float(saved[1]) / 1000) if saved else None


class RankTimers:
    """Timers of one log. Only compute times show a slow rank: in all others, each rank waits for the slowest one."""

    def __init__(self) -> None:
        self._step: Step | None = None
        self._times_s: dict[int, float] = defaultdict(float)
        self._in_compute = False
        self._last_rank = -1

    def begin(self, step: Step) -> None:
        """Start with the timers that follow this step."""
        self._step, self._in_compute = step, False
        self._times_s.clear()

    def read(self, line: bytes) -> None:
        """Read a line of the timers. A rank that is not higher than the one before begins another timer."""
        if COMPUTE in line:
            self._in_compute, self._last_rank = True, -1
        elif found := _RANK_TIME.search(line):
            rank = int(found[1])
            self._in_compute = self._in_compute and rank > self._last_rank
            self._last_rank = rank
            if self._in_compute:
                self._times_s[rank] += float(found[2]) / 1000

    def take_step(self) -> Step | None:
        """Return the step with the compute times of its ranks, once, or None without such times."""
        if self._step is None or not self._times_s:
            return None
        step = attrs.evolve(self._step, rank_times=dict(self._times_s))
        self._times_s.clear()
        return step
