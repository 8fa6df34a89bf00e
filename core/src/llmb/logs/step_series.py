"""Steps and notices of the current run, collected from what parsers return."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from llmb.values.steps import Notice, NoticeKind, Step, rhythm

MOST_NOTICES = 1000
"""Different notices of a run that are kept."""

Layout = tuple[Any, ...]
"""Whether each field of a step is None, and the names of its figures. Most steps of a log have the same layout."""


class StepTable(Sequence[Step]):
    """Steps in the order of their numbers, each number once, in a fifth of the memory of a list of `Step`."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.numbers = array("q")
        """The number of each step, in ascending order."""
        self._rows: list[bytes] = []  # doubles: the layout of the step, its fields with 0 for None, its figures
        self._layouts: list[Layout] = []
        self._layout_numbers: dict[Layout, int] = {}

    def put(self, step: Step) -> None:
        """Add a step, or replace the step of the same number."""
        figures = step.figures
        time_s, loss, tflops, tokens = step.time_s, step.loss, step.tflops_per_gpu, step.tokens_per_s_per_gpu
        layout = (time_s is None, loss is None, tflops is None, tokens is None, *figures)
        number = self._layout_numbers.setdefault(layout, len(self._layouts))
        if number == len(self._layouts):
            self._layouts.append(layout)
        values = (number, time_s or 0, loss or 0, tflops or 0, tokens or 0, step.mean_of or 0, *figures.values())
        row = array("d", values).tobytes()
        if not self.numbers or step.step > self.numbers[-1]:
            self.numbers.append(step.step)
            self._rows.append(row)
            return
        place = bisect_left(self.numbers, step.step)
        if self.numbers[place] == step.step:
            self._rows[place] = row
        else:
            self.numbers.insert(place, step.step)
            self._rows.insert(place, row)

    @property
    def rhythm(self) -> int:
        """The most common distance between printed steps (`llmb.values.steps.rhythm`)."""
        return rhythm(self.numbers)

    def __len__(self) -> int:
        return len(self._rows)

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
        number, time_s, loss, tflops, tokens, mean_of, *figures = array("d", self._rows[place])
        no_time, no_loss, no_tflops, no_tokens, *names = self._layouts[int(number)]
        return Step(
            step=self.numbers[place],
            time_s=None if no_time else time_s,
            loss=None if no_loss else loss,
            tflops_per_gpu=None if no_tflops else tflops,
            tokens_per_s_per_gpu=None if no_tokens else tokens,
            figures=dict(zip(names, figures, strict=True)),
            mean_of=int(mean_of) or self._steps_since_before(place),
            attempt=self.attempt,
        )

    def _steps_since_before(self, place: int) -> int:
        """Return how many steps were run since the one printed before; for the first one, as many as usual."""
        number = self.numbers[place]
        return number - self.numbers[place - 1] if place else max(1, min(number, self.rhythm))


class StepSeries:
    """Steps and notices of one log, or of the logs of one run's ranks.

    A step that is given again replaces the earlier one. A higher attempt begins a new run: only the last run is kept,
    with its own notices. ``first_step`` is the number that the framework gives to its first step, if it is known.
    """

    def __init__(self, *, first_step: int | None = None) -> None:
        self.first_step = first_step
        self.nan = False
        """True if a loss of the current run was NaN, according to its steps or to a notice."""
        self.total_steps: int | None = None
        """The number of steps that the log announces, if it does."""
        self._table = StepTable(attempt=0)
        self._notices: dict[Notice, None] = {}

    def add(self, items: Iterable[Step | Notice]) -> None:
        """Add what a parser returned."""
        for item in items:
            if item.attempt is not None and item.attempt < self._table.attempt:
                continue  # of an earlier run
            if isinstance(item, Notice):
                self._note(item)
            else:
                self._take(item)

    def _take(self, step: Step) -> None:
        if step.attempt > self._table.attempt:
            self._table = StepTable(step.attempt)
            self._notices.clear()
            self.nan = False
        self._table.put(step)
        if step.loss is not None and math.isnan(step.loss):
            self.nan = True

    def _note(self, notice: Notice) -> None:
        if notice.kind == "total steps":
            self.total_steps = notice.value
        if len(self._notices) < MOST_NOTICES:
            self._notices[notice] = None
        self.nan = self.nan or notice.kind == "nan"

    @property
    def attempt(self) -> int:
        """The number of the current run, from 0. Runs that begin in one log are counted."""
        return self._table.attempt

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the current run, in the order of their numbers."""
        return self._table

    @property
    def last_step(self) -> Step | None:
        """The step with the highest number."""
        return self._table[-1] if self._table else None

    @property
    def count(self) -> int:
        """The number of steps that were run, even if a log prints only every n-th.

        Numbers that begin at 0, at 1 or at the first printed interval are counted from there. Numbers that begin later
        belong to a resumed run or to a part of a log, so the last number counts. The last number also counts if it is
        not a multiple of the interval from the first one, for example if a log prints step 1 and every tenth step.
        """
        if not self._table:
            return 0
        numbers, rhythm = self._table.numbers, self._table.rhythm
        if numbers[0] <= rhythm and (numbers[-1] - numbers[0]) % rhythm == 0:
            return numbers[-1] - numbers[0] + rhythm
        first = min(numbers[0], 1) if self.first_step is None else self.first_step
        return numbers[-1] + 1 - first

    @property
    def rhythm(self) -> int:
        """The most common distance between printed steps, 1 if there is none."""
        return self._table.rhythm

    @property
    def notices(self) -> Sequence[Notice]:
        """The notices of the current run, each one once, in order."""
        return tuple(self._notices)

    def has_notice(self, *kinds: NoticeKind) -> bool:
        """Check whether there is a notice of one of these kinds."""
        return any(notice.kind in kinds for notice in self._notices)
