"""Whether a step number that goes back is a step printed again, or the start of a new run.

The rule, for the lines of one rank, or of ranks that cannot be told apart:

- A number that goes back is a step printed again (by a rank that is late, or after a rewind to a checkpoint): it
  replaces the earlier one, and the run goes on.
- A new run may begin where the numbering starts afresh: at 0, at 1, or where this run began. It is believed when the
  next number counts on from there, nearer to the fresh start than to where the run was.
- If the next one goes beyond all that the run has printed, it was one late line. Until it is known the step is held
  back; at the end of the log it is a late one.

So ranks that print all their steps may be interleaved in any way that can happen: every step is kept, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from llmb.logs.found import UnreadStep
from llmb.values.steps import Step

AnyStep = Step | UnreadStep

FIRST_LINE_LOST = 10
"""Printed steps after which a 1 begins a new run although the old one began at 0; before that, it is a late line."""


@attrs.define
class _Rank:
    """The numbers that one rank has printed: its first, its highest, and how often a new highest came."""

    first: int
    highest: int
    risen: int = 0
    held: dict[int, AnyStep] = attrs.field(factory=dict)

    def may_start_afresh_at(self, number: int) -> bool:
        """Whether a number that is not a new highest may be the first one of a new run."""
        if number == self.highest:
            return False
        if number == self.first or number <= min(1, self.first):
            return True
        return number == 1 and self.risen >= FIRST_LINE_LOST


class Numbering:
    """Gives each step of one log its attempt. The log has one run at a time, whichever rank a line is from."""

    def __init__(self) -> None:
        self.attempt = 0
        self._ranks: dict[bytes, _Rank] = {}

    def take(self, step: AnyStep, label: bytes = b"") -> Sequence[AnyStep]:
        """The steps that are certain now, in order, each with its attempt; ``label`` names the rank."""
        number = step.step
        rank = self._ranks.get(label)
        if rank is None:
            self._ranks[label] = _Rank(number, number)
        elif rank.held:
            return self._decide(step, rank, label)
        elif number > rank.highest:
            rank.highest = number
            rank.risen += 1
        elif rank.may_start_afresh_at(number):
            rank.held[number] = step
            return ()
        elif number < rank.first:
            rank.first = number
        return (self._placed(step),)

    def rises(self, number: int, label: bytes = b"") -> bool:
        """Whether a step is certain at once, and of the present attempt: its rank's highest, or that one again."""
        rank = self._ranks.get(label)
        if rank is None or rank.held or number < rank.highest:
            return False
        if number > rank.highest:
            rank.highest = number
            rank.risen += 1
        return True

    @property
    def undecided(self) -> bool:
        """Whether steps are held back."""
        return any(rank.held for rank in self._ranks.values())

    @property
    def begun(self) -> bool:
        """Whether there was a step as yet."""
        return bool(self._ranks)

    def close(self) -> list[AnyStep]:
        """Steps that are still held back: late lines."""
        return [step for rank in self._ranks.values() for step in self._release(rank)]

    def _decide(self, step: AnyStep, rank: _Rank, label: bytes) -> Sequence[AnyStep]:
        """A step that follows those held back: the run goes on, or a new one has begun, or it is still open."""
        number, start = step.step, min(rank.held)
        if number > rank.highest:
            late = self._release(rank)
            return (*late, *self.take(step, label))
        if number in rank.held or rank.may_start_afresh_at(number):
            rank.held[number] = step
            return self._begin() if len(rank.held) > 1 else ()
        if start < number and number - start <= rank.highest - number:
            return (*self._begin(), *self.take(step, label))
        return (self._placed(step),)

    def _begin(self) -> list[AnyStep]:
        """A new run for all ranks, with the steps held back as its first."""
        old, self._ranks = self._ranks, {}
        self.attempt += 1
        return [
            placed for label, rank in old.items() for step in rank.held.values() for placed in self.take(step, label)
        ]

    def _release(self, rank: _Rank) -> list[AnyStep]:
        held, rank.held = rank.held, {}
        return self._placed_all(held.values())

    def _placed_all(self, steps: Iterable[AnyStep]) -> list[AnyStep]:
        return [self._placed(step) for step in steps]

    def _placed(self, step: AnyStep) -> AnyStep:
        return attrs.evolve(step, attempt=self.attempt) if self.attempt else step
