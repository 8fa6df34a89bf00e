"""The steps of the current run, as parsers give them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from llmb.logs.found import Found, UnreadSteps
from llmb.logs.table import StepTable
from llmb.values.steps import Notice, NoticeKind, Step

MOST_NOTICES = 1000  # different ones; what is beyond says nothing new


class StepSeries:
    """Collects steps and notices of one log, or of the logs of one run's ranks.

    A step given again replaces the earlier one; a higher attempt begins a new run, and only the last run is kept, with
    its own notices. ``first_step`` is the number that the framework gives to its first step, where that is known.
    """

    def __init__(self, *, first_step: int | None = None) -> None:
        self.first_step = first_step
        self.nan = False
        """Whether a loss of the current run was NaN, by its steps or by a notice."""
        self.total_steps: int | None = None
        """How many steps the log says there will be, where it does."""
        self._table = StepTable()
        self._notices: dict[Notice, None] = {}

    def add(self, items: Iterable[Step | Notice]) -> None:
        """Take what a parser found."""
        for item in items.pieces if isinstance(items, Found) else items:
            if isinstance(item, Notice):
                if item.attempt is None or item.attempt >= self._table.attempt:
                    self._note(item)
            elif isinstance(item, UnreadSteps):
                self._take_unread(item)
            elif item.attempt >= self._table.attempt:
                self._take(item)

    def read_all(self) -> None:
        """Read the steps that were kept as text. What the parser raises is raised here, and later no more."""
        self._table.read_all()

    def _begin(self, attempt: int) -> None:
        if attempt > self._table.attempt:
            self._table = StepTable(attempt)
            self._notices.clear()
            self.nan = False

    def _take_unread(self, steps: UnreadSteps) -> None:
        if steps.attempt >= self._table.attempt:
            self._begin(steps.attempt)
            self._table.put_unread(steps)

    def _take(self, step: Step) -> None:
        self._begin(step.attempt)
        self._table.put(step)
        self.nan = self.nan or (step.loss is not None and math.isnan(step.loss))

    def _note(self, notice: Notice) -> None:
        if notice.kind == "total steps":
            self.total_steps = notice.value
        if len(self._notices) < MOST_NOTICES:
            self._notices[notice] = None
        self.nan = self.nan or notice.kind == "nan"

    @property
    def attempt(self) -> int:
        """The number of the current run, from 0; runs that begin in one log are counted."""
        return self._table.attempt

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the current run, in the order of their numbers."""
        return self._table

    @property
    def last_step(self) -> Step | None:
        """The one with the highest number."""
        return self._table[-1] if self._table else None

    @property
    def count(self) -> int:
        """How many steps were run, also where a log prints only each n-th.

        Numbering that begins at 0 or 1 (or at the first printed interval) is counted from there. One that begins
        later belongs to a run that was resumed, or to a part of a log: its last number tells. So it does where the
        last one is out of step with the first, as where the first step is printed besides each tenth.
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
        """The distance between printed steps that is most common; 1 where there is none."""
        return self._table.rhythm

    @property
    def notices(self) -> Sequence[Notice]:
        """What else the log said of the current run, each thing once, in order."""
        return tuple(self._notices)

    def says(self, *kinds: NoticeKind) -> bool:
        """Whether there is a notice of one of these kinds."""
        return any(notice.kind in kinds for notice in self._notices)
