"""Steps and notices of the current run, collected from what parsers return."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from llmb.logs.steps.nan_steps import NanSteps
from llmb.logs.steps.restarts import NEWEST_FIRST
from llmb.values.steps import Notice, NoticeKind, Step, rhythm
from llmb.values.texts.error_text import format_value

MOST_NOTICES = 1000
"""Different notices of a run that are kept."""

Place = tuple[bool, bool, int, tuple[str | int, ...]]
"""The place of a process among those of a run, which is the same in whatever order their logs are read."""


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
        self._places: list[Place] = []
        self._only_fell_from: int | None = None
        self._falls: dict[Place, int] = {}  # of processes whose last numbers each were below all earlier ones

    def put(self, step: Step, process: Place) -> None:
        """Add a step of a process, or replace the step of the same number of this process or of a later one."""
        number, numbers = step.step, self.numbers
        if not numbers or number > numbers[-1]:
            numbers.append(number)
            self._steps.append(step)
            self._places.append(process)
            if self._falls:
                self._falls.pop(process, None)
            return
        index = bisect_left(numbers, number)
        if numbers[index] == number:
            before, known = self._places[index], self._steps[index]
            if step.time_s is None or known.time_s is None:
                is_first = process is before or (*_lacks(step), process) < (*_lacks(known), before)
            else:
                is_first = process <= before
            if is_first:
                self._steps[index], self._places[index] = step, process
            return
        if len(numbers) == 1:
            self._only_fell_from = numbers[0]
        if index == 0:
            self._falls[process] = self._falls.get(process, 0) + 1
        else:
            self._falls.pop(process, None)
        numbers.insert(index, number)
        self._steps.insert(index, step)
        self._places.insert(index, process)

    @property
    def newest_first(self) -> bool:
        """True if the first step has the highest number, and several others of one process came in falling order."""
        has_fallen = any(falls >= NEWEST_FIRST for falls in self._falls.values())
        return has_fallen and self.numbers[-1] == self._only_fell_from

    @property
    def rhythm(self) -> int:
        """The most common distance between printed steps (`llmb.values.steps.rhythm`)."""
        return rhythm(self.numbers)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        places = range(len(self))[index]
        return self._step(places) if isinstance(places, int) else [self._step(place) for place in places]

    def __iter__(self) -> Iterator[Step]:
        return map(self._step, range(len(self)))

    def _step(self, place: int) -> Step:
        """Return a step. A mean since the step before is one of as many steps; the first one, of as many as usual."""
        step, number = self._steps[place], self.numbers[place]
        if step.mean_of is not None:
            return step
        before = self.numbers[place - 1] if place else number - max(1, min(number, self.rhythm))
        return Step(  # faster than attrs.evolve, and some formats have one for each step
            step=number,
            time_s=step.time_s,
            loss=step.loss,
            tflops_per_gpu=step.tflops_per_gpu,
            tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
            figures=step.figures,
            mean_of=number - before,
            attempt=step.attempt,
        )


def _find_place(source: str, rank: int | None) -> Place:
    """Return the place of a process. A step of unknown source and rank, from the end of all logs, is last."""
    name = tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", source))  # rank9 before rank10
    return not source and rank is None, rank is None, rank or 0, name


def _lacks(step: Step) -> tuple[bool, bool]:
    """Return whether a step has no time, and whether it has neither a time nor a rate."""
    no_time = step.time_s is None
    return no_time, no_time and step.tflops_per_gpu is None and step.tokens_per_s_per_gpu is None


class StepSeries:
    """Steps and notices of one log, or of the logs of one run's ranks.

    A step that a process prints again replaces the earlier one. A higher attempt begins a new run: only the last run is
    kept, with its own notices. ``first_step`` is the number that the framework gives to its first step, if known.
    """

    def __init__(self, *, first_step: int | None = None) -> None:
        self.first_step = first_step
        self.end_texts: Sequence[str] = ()
        """Texts of which the log of a complete run contains one at its end."""
        self.checkpoints_s = 0.0
        """The time that the current run spent on checkpoints between its steps, as far as the log states it."""
        self._steps = SortedSteps(attempt=0)
        self._notices: dict[Notice, None] = {}
        self._nan_steps = NanSteps()
        self._sources: set[str] = set()
        self._places: dict[str, dict[int | None, Place]] = {}
        self._last: dict[str, Step] = {}
        self._checkpoints: set[tuple[str, int, Notice]] = set()
        self._announced_steps: int | None = None

    def add(self, items: Iterable[Step | Notice], *, source: str | None = None) -> None:
        """Add what a parser returned for a log, or at the end of all logs (None)."""
        source = self._source_of(source)
        steps, repeating = self._steps, self._nan_steps.printed
        last, places = self._last.get(source) or Step(step=0), self._places.setdefault(source, {})
        for item in items:
            attempt = item.attempt
            if attempt is not None and attempt < steps.attempt:
                continue  # of an earlier run
            if isinstance(item, Notice):
                self._note(item, source, last)
                continue
            if item.attempt > steps.attempt:
                self._steps = steps = SortedSteps(item.attempt)
                self._notices.clear()
                self._nan_steps.clear()
                self.checkpoints_s = 0.0
                self._checkpoints.clear()
            rank = item.rank
            place = places.get(rank)
            if place is None:
                place = places[rank] = _find_place(source, rank)
            steps.put(item, place)
            last = item
            if item.loss != item.loss:  # only NaN differs from itself
                self._nan_steps.add(item.step, (source, rank))
            elif repeating:
                self._nan_steps.repeat(item, (source, rank))
        self._last[source] = last

    def _source_of(self, source: str | None) -> str:
        """Return the log of new steps. At the end of all logs (None), it is known if there is only one."""
        if source is not None:
            self._sources.add(source)
        elif len(self._sources) == 1:
            (source,) = self._sources
        return source or ""

    def _note(self, notice: Notice, source: str, last: Step) -> None:
        if notice.kind == "total steps":
            self._announced_steps = notice.value
        if len(self._notices) < MOST_NOTICES:
            self._notices[notice] = None
        if notice.kind == "nan":  # of the step before it
            self._nan_steps.add(last.step, (source, last.rank))
        checkpoint = (source, last.step, notice)
        if notice.time_s and checkpoint not in self._checkpoints:  # handlers of Python's logging may print it twice
            self._checkpoints.add(checkpoint)
            self.checkpoints_s += notice.time_s

    @property
    def nan(self) -> bool:
        """True if a loss of the current run was NaN, according to a notice or to steps that were not repeated."""
        return bool(self._nan_steps)

    @property
    def attempt(self) -> int:
        """The number of the current run, from 0. Runs that begin in one log are counted."""
        return self._steps.attempt

    @property
    def total_steps(self) -> int | None:
        """The number of steps that the log announces, if it does. A run that ended as planned has all of its steps."""
        return self.count if self.has_notice("planned end") else self._announced_steps

    @property
    def runs(self) -> int:
        """The number of runs so far that had a step."""
        return self.attempt + 1 if self._steps else 0

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the current run, in the order of their numbers."""
        return self._steps

    @property
    def last_step(self) -> Step | None:
        """The step with the highest number."""
        return self._steps[-1] if self._steps else None

    @property
    def count(self) -> int:
        """The number of steps that were run, even if a log prints only every n-th.

        Numbers that begin at 0, at 1 or at the first printed interval are counted from there. Numbers that begin later
        belong to a resumed run or to a part of a log, so the last number counts. The last number also counts if it is
        not a multiple of the interval from the first one, for example if a log prints step 1 and every tenth step.
        """
        if not self._steps:
            return 0
        numbers, rhythm = self._steps.numbers, self._steps.rhythm
        if numbers[0] <= rhythm and (numbers[-1] - numbers[0]) % rhythm == 0:
            return numbers[-1] - numbers[0] + rhythm
        first = min(numbers[0], 1) if self.first_step is None else self.first_step
        return numbers[-1] + 1 - first

    @property
    def earlier_count(self) -> int:
        """The number of counted steps before the first one in the log: the run resumed after them."""
        if not self._steps:
            return 0
        numbers = self._steps.numbers
        return max(0, self.count - (numbers[-1] - numbers[0] + self._steps.rhythm))

    @property
    def rhythm(self) -> int:
        """The most common distance between printed steps, or 1 if no distance occurs twice."""
        return self._steps.rhythm

    @property
    def newest_first(self) -> bool:
        """True if the lines of the log are in reverse: the newest one is first."""
        return self._steps.newest_first

    @property
    def missing_end(self) -> str:
        """The text at the end of the log of a complete run that this log lacks, quoted, or ""."""
        return "" if self.has_notice("finished") else " or ".join(map(format_value, self.end_texts))

    @property
    def notices(self) -> Sequence[Notice]:
        """The notices of the current run, each one once, in order."""
        return tuple(self._notices)

    def has_notice(self, *kinds: NoticeKind) -> bool:
        """Check whether there is a notice of one of these kinds."""
        return any(notice.kind in kinds for notice in self._notices)
