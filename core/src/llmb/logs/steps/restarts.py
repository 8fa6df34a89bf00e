"""Decision between a step that is printed again and the first step of a new run, if a step number goes back.

The rules, for the lines of one rank or of ranks that are not labelled:

- A number that goes back is a step printed again, by a late rank or after a rewind to a checkpoint. It replaces the
  earlier step, and the run continues.
- A number that equals the one before it is a line printed twice, for example by two handlers of Python's logging.
- A new run may begin if the number is 0, 1, the first number of this run, or at most the last interval between printed
  steps (10 if each tenth step is printed). The run begins if the next number continues from there and is nearer to that
  number than to the end of the run before.
- Until the next number is known, the step is held back. If the next number exceeds all numbers of the run, or the log
  ends, the step was only a late line.
- No run begins in a log with its newest line first: its numbers have only fallen, several times.

So ranks that print all their steps may be interleaved in any order that can occur: every step is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from llmb.values.steps import Step

FIRST_LINE_LOST = 10
"""Steps of a run that began at 0 after which a 1 begins a new run. Before, a 1 is a late line."""

NEWEST_FIRST = 3
"""Numbers that each are the lowest so far, and follow no higher one, after which the newest line of a log is first."""


@attrs.define
class _Rank:
    """Numbers that one rank has printed.

    ``first`` is the lowest number of the start, and ``last`` the one printed last. ``rises`` counts the numbers above
    all before them, and ``falls`` those below ``first``. ``interval`` is the last rise.
    """

    first: int
    highest: int
    last: int
    rises: int = 0
    falls: int = 0
    interval: int = 1
    held: dict[int, Step] = attrs.field(factory=dict)

    def may_begin_run(self, number: int) -> bool:
        """Check whether a number that is not a new highest may be the first number of a new run."""
        if number in (self.highest, self.last) or (not self.rises and self.falls >= NEWEST_FIRST):
            return False
        if number == self.first:
            return self.rises > 0
        if number <= min(self.interval, self.first):
            return True
        return number == 1 and self.rises >= FIRST_LINE_LOST


class Numbering:
    """Sets the attempt of each step of one log. All ranks in a log belong to the same run."""

    def __init__(self) -> None:
        self.attempt = 0
        """The number of the current run, from 0."""
        self._ranks: dict[bytes, _Rank] = {}

    def take(self, step: Step, label: bytes = b"") -> Sequence[Step]:
        """Add a step of the rank with this label. Return the steps whose attempt is now certain and set, in order."""
        number, label = step.step, self._rank_of(label)
        rank = self._ranks.get(label)
        if rank is None:
            rank = self._ranks[label] = _Rank(number, number, number)
        elif rank.held:
            return self._decide(step, rank, label)
        elif number > rank.highest:
            rank.interval = number - rank.highest
            rank.highest = number
            rank.rises += 1
        elif rank.may_begin_run(number):
            rank.held[number] = step
            return ()
        elif number < rank.first:
            rank.first = number
            rank.falls += 1
        rank.last = number
        step.attempt = self.attempt
        return (step,)

    def _rank_of(self, label: bytes) -> bytes:
        """Return the label of the rank that printed a line. A log may be continued by a launcher that adds labels."""
        return b"" if label and self._ranks.keys() == {b""} else label

    @property
    def undecided(self) -> bool:
        """True if steps are held back."""
        return any(rank.held for rank in self._ranks.values())

    @property
    def begun(self) -> bool:
        """True if there was a step."""
        return bool(self._ranks)

    def close(self) -> list[Step]:
        """Return the steps that are still held back, which were late lines."""
        return [step for rank in self._ranks.values() for step in self._release(rank)]

    def _decide(self, step: Step, rank: _Rank, label: bytes) -> Sequence[Step]:
        """Add a step that follows steps held back: the run continues, or a new run began, or it is still open."""
        number, start = step.step, min(rank.held)
        if number > rank.highest:
            late = self._release(rank)
            return (*late, *self.take(step, label))
        if number in rank.held or rank.may_begin_run(number):
            rank.held[number] = step
            return self._begin_run() if len(rank.held) > 1 else ()
        if start < number and number - start <= rank.highest - number:
            return (*self._begin_run(), *self.take(step, label))
        rank.last = number
        step.attempt = self.attempt
        return (step,)

    def _begin_run(self) -> list[Step]:
        """Begin a new run for all ranks, with the steps held back as its first ones."""
        ranks, self._ranks = self._ranks, {}
        self.attempt += 1
        certain: list[Step] = []
        for label, rank in ranks.items():
            for step in rank.held.values():
                certain += self.take(step, label)
        return certain

    def _release(self, rank: _Rank) -> list[Step]:
        held, rank.held = rank.held, {}
        for step in held.values():
            step.attempt = self.attempt
        return list(held.values())
