"""Whether a step number that goes back is a step printed again, or the start of a new run.

The rule, for the lines of one rank (or of ranks that cannot be told apart):

- A number that goes back is a step printed again, by another rank or after a rewind; it replaces the earlier one.
- A new run begins where numbering starts afresh: at a number no higher than the first one seen and than the distance
  between printed steps, from further back than ranks lag behind one another (`LAG`).
- That is believed when the next number is nearer to the fresh start than to where the run was. One late line is
  therefore never taken for a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from llmb.values.steps import Step

LAG = 2  # steps that ranks of one run may be apart: collectives keep them together


class Numbering:
    """Gives each step its attempt. A step that may begin a new run is held back until the next one tells."""

    def __init__(self) -> None:
        self._attempt = 0
        self._first: int | None = None
        self._last = 0
        self._gap = 0
        self._held: Step | None = None

    def take(self, step: Step) -> Iterator[Step]:
        """The steps that are certain now, in order, each with its attempt."""
        if self._held is not None:
            if step.step == self._held.step:
                self._held = step
                return
            if self._nearer_to_fresh_start(step.step, self._held.step):
                yield from self._begin(self._held)
            elif step.step > self._last:
                yield from self.close()  # the run went on: what was held back was one late line
        elif self._starts_afresh(step.step):
            self._held = step
            return
        self._see(step.step)
        yield self._of_attempt(step)

    def close(self) -> Iterator[Step]:
        """A step that is still held back is one late line."""
        if self._held is not None:
            yield self._of_attempt(self._held)
            self._held = None

    def _starts_afresh(self, number: int) -> bool:
        if self._first is None:
            return False
        return number <= min(self._first, max(1, self._gap)) and self._last - number > LAG

    def _nearer_to_fresh_start(self, number: int, start: int) -> bool:
        return start < number and number - start <= self._last - number

    def _begin(self, step: Step) -> Iterator[Step]:
        self._attempt += 1
        self._first, self._gap, self._held = None, 0, None
        self._see(step.step)
        yield self._of_attempt(step)

    def _see(self, number: int) -> None:
        if self._first is None:
            self._first = self._last = number
        elif number > self._last:
            self._gap = self._gap or number - self._last
            self._last = number

    def _of_attempt(self, step: Step) -> Step:
        return attrs.evolve(step, attempt=self._attempt) if self._attempt else step
