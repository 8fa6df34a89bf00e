"""The steps of the current run, as parsers give them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from llmb.values.steps import Notice, Step


class StepSeries:
    """Collects steps and notices of one log, or of the logs of one run's ranks.

    A step given again replaces the earlier one; a higher attempt begins a new run, and only the last run is kept.
    """

    def __init__(self) -> None:
        self.attempt = 0
        self.notices: list[Notice] = []
        self._steps: dict[int, Step] = {}
        self._last: Step | None = None

    def add(self, items: Iterable[Step | Notice]) -> None:
        """Take what a parser found."""
        for item in items:
            if isinstance(item, Notice):
                self.notices.append(item)
            elif item.attempt >= self.attempt:
                self._take(item)

    def _take(self, step: Step) -> None:
        if step.attempt > self.attempt:
            self.attempt = step.attempt
            self._steps.clear()
            self._last = None
        self._steps[step.step] = step
        if self._last is None or step.step >= self._last.step:
            self._last = step

    @property
    def steps(self) -> list[Step]:
        """In the order of their numbers."""
        return [self._steps[number] for number in sorted(self._steps)]

    @property
    def last_step(self) -> Step | None:
        """The one with the highest number."""
        return self._last

    @property
    def count(self) -> int:
        """How many steps were run, also where a log prints only each n-th.

        Numbering that begins at 0 or 1 (or at the first printed interval) is counted from there; one that begins
        later belongs to a run that was resumed, and its last number tells.
        """
        if self._last is None:
            return 0
        first, rhythm = min(self._steps), self.rhythm
        return self._last.step - first + rhythm if first <= rhythm else self._last.step

    @property
    def rhythm(self) -> int:
        """The distance between printed steps that is most common; 1 where there is none."""
        gaps = Counter(after - before for before, after in pairwise(sorted(self._steps)))
        gap, seen = gaps.most_common(1)[0] if gaps else (1, 0)
        return gap if seen > 1 else 1

    @property
    def total_steps(self) -> int | None:
        """How many steps the log says there will be, where it does."""
        totals = [notice.value for notice in self.notices if notice.kind == "total steps"]
        return totals[-1] if totals else None

    @property
    def nan(self) -> bool:
        """Whether a loss of the current run was NaN."""
        return any(step.loss is not None and math.isnan(step.loss) for step in self._steps.values())
