"""Steps and notices of the current run, collected from what parsers return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llmb.logs.steps.nan_steps import NanSteps
from llmb.logs.steps.steps_of_lowest_rank import ProcessPosition, SortedSteps, find_process_position
from llmb.values.steps import Notice, NoticeKind, Step
from llmb.values.texts.error_text import format_value

MAX_NOTICES = 1000
"""Different notices of a run that are kept."""


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
        self._positions: dict[str, dict[int | None, ProcessPosition]] = {}
        self._last: dict[str, Step] = {}
        self._checkpoints: set[tuple[str, int, Notice]] = set()
        self._announced_steps: int | None = None

    def add(self, items: Iterable[Step | Notice], *, source: str | None = None) -> None:
        """Add what a parser returned for a log, or at the end of all logs (None)."""
        source = self._source_of(source)
        steps, repeating = self._steps, self._nan_steps.printed
        last, positions = self._last.get(source) or Step(step=0), self._positions.setdefault(source, {})
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
            position = positions.get(rank)
            if position is None:
                position = positions[rank] = find_process_position(source, rank)
            steps.put(item, position)
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
        if len(self._notices) < MAX_NOTICES:
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
        numbers, log_interval = self._steps.numbers, self._steps.log_interval
        if numbers[0] <= log_interval and (numbers[-1] - numbers[0]) % log_interval == 0:
            return numbers[-1] - numbers[0] + log_interval
        first = min(numbers[0], 1) if self.first_step is None else self.first_step
        return numbers[-1] + 1 - first

    @property
    def earlier_count(self) -> int:
        """The number of counted steps before the first one in the log: the run resumed after them."""
        if not self._steps:
            return 0
        numbers = self._steps.numbers
        return max(0, self.count - (numbers[-1] - numbers[0] + self._steps.log_interval))

    @property
    def log_interval(self) -> int:
        """The most common distance between printed steps, or 1 if no distance occurs twice."""
        return self._steps.log_interval

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
