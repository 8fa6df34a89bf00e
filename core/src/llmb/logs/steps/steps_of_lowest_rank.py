"""Steps of a run of which several ranks print each: those of the lowest rank count."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import overload

from llmb.logs.steps.restarts import NEWEST_FIRST
from llmb.values.steps import Step, find_log_interval

ProcessPosition = tuple[bool, bool, int, tuple[str | int, ...]]
"""The position of a process among those of a run, which is the same in whatever order their logs are read."""


class SortedSteps(Sequence[Step]):
    """Steps of one run in the order of their numbers, each number once.

    If several processes print a step, that of the first process counts: the lowest rank, else the log with the lowest
    name. Publishers measure one process too. A step without a time gives way to one with a time or, if no process
    prints times, with a rate.
    """

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.numbers: list[int] = []
        """The number of each step, in ascending order."""
        self._steps: list[Step] = []
        self._positions: list[ProcessPosition] = []
        self._only_fell_from: int | None = None
        self._falls: dict[ProcessPosition, int] = {}  # of processes whose last numbers each were below all earlier ones

    def put(self, step: Step, process: ProcessPosition) -> None:
        """Add a step of a process, or replace the step of the same number of this process or of a later one."""
        number, numbers = step.step, self.numbers
        if not numbers or number > numbers[-1]:
            numbers.append(number)
            self._steps.append(step)
            self._positions.append(process)
            if self._falls:
                self._falls.pop(process, None)
            return
        index = bisect_left(numbers, number)
        if numbers[index] == number:
            before, known = self._positions[index], self._steps[index]
            if step.time_s is None or known.time_s is None:
                is_first = process is before or (*_lacks(step), process) < (*_lacks(known), before)
            else:
                is_first = process <= before
            if is_first:
                self._steps[index], self._positions[index] = step, process
            return
        if len(numbers) == 1:
            self._only_fell_from = numbers[0]
        if index == 0:
            self._falls[process] = self._falls.get(process, 0) + 1
        else:
            self._falls.pop(process, None)
        numbers.insert(index, number)
        self._steps.insert(index, step)
        self._positions.insert(index, process)

    @property
    def newest_first(self) -> bool:
        """True if the first step has the highest number, and several others of one process came in falling order."""
        has_fallen = any(falls >= NEWEST_FIRST for falls in self._falls.values())
        return has_fallen and self.numbers[-1] == self._only_fell_from

    @property
    def log_interval(self) -> int:
        """The most common distance between printed steps (`find_log_interval`)."""
        return find_log_interval(self.numbers)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        indices = range(len(self))[index]
        return self._step(indices) if isinstance(indices, int) else [self._step(each) for each in indices]

    def __iter__(self) -> Iterator[Step]:
        return map(self._step, range(len(self)))

    def _step(self, index: int) -> Step:
        """Return a step. A mean since the step before is one of as many steps; the first one, of as many as usual."""
        step, number = self._steps[index], self.numbers[index]
        if step.mean_of is not None:
            return step
        before = self.numbers[index - 1] if index else number - max(1, min(number, self.log_interval))
        return Step(  # faster than attrs.evolve, and some formats have one for each step
            step=number,
            time_s=step.time_s,
            loss=step.loss,
            tflops_per_gpu=step.tflops_per_gpu,
            tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
            other_values=step.other_values,
            mean_of=number - before,
            attempt=step.attempt,
        )


def find_process_position(source: str, rank: int | None) -> ProcessPosition:
    """Return the position of a process among those of the run.

    A step of unknown source and rank, from the end of all logs, is last.
    """
    name = tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", source))  # rank9 before rank10
    return not source and rank is None, rank is None, rank or 0, name


def _lacks(step: Step) -> tuple[bool, bool]:
    """Return whether a step has no time, and whether it has neither a time nor a rate."""
    no_time = step.time_s is None
    return no_time, no_time and step.tflops_per_gpu is None and step.tokens_per_s_per_gpu is None
