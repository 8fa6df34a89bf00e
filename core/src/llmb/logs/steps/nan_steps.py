"""Steps whose loss was NaN, until the run goes back to a checkpoint and repeats them with another loss."""

from __future__ import annotations

from collections import defaultdict

from llmb.logs.steps.rank_steps import LoggedRank
from llmb.values.steps import Step


class NanSteps:
    """Steps of the current run whose loss was NaN, by the process that printed them.

    A process that prints a lower number went back to a checkpoint. If it then repeats a step with another loss, the NaN
    is no longer part of the run. A step that is printed twice without going back stays NaN, because another process may
    have printed it.
    """

    def __init__(self) -> None:
        self._latest = defaultdict[LoggedRank, list[int]](list)
        """Steps after which their process did not go back, in ascending order."""
        self._undone: set[tuple[LoggedRank, int]] = set()
        """Steps that their process printed before it went back, and did not repeat so far."""
        self.printed: dict[LoggedRank, int] = {}
        """The last number that each process printed, from its first step whose loss was NaN."""

    def __bool__(self) -> bool:
        return bool(self._undone) or any(self._latest.values())

    def clear(self) -> None:
        """Drop all steps, because a new run began."""
        self._latest.clear()
        self._undone.clear()
        self.printed.clear()

    def add(self, number: int, process: LoggedRank) -> None:
        """Add a step of a process."""
        self._move_to(number, process)
        self._undone.discard((process, number))
        latest = self._latest[process]
        if number not in latest[-1:]:
            latest.append(number)

    def repeat(self, step: Step, process: LoggedRank) -> None:
        """Drop a step that a process prints again with another loss, if the process went back."""
        self._move_to(step.step, process)
        if step.loss is not None:
            self._undone.discard((process, step.step))

    def _move_to(self, number: int, process: LoggedRank) -> None:
        """Note the number that a process printed. If it is lower than the one before, the process went back."""
        before, self.printed[process] = self.printed.get(process, number), number
        latest = self._latest.get(process, [])
        while latest and number <= latest[-1] and number < before:
            self._undone.add((process, latest.pop()))
