"""What a parser found, where most steps are only known by their number: their figures are read when they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

import attrs

from llmb.values.steps import Notice, Step

ReadStep = Callable[[bytes], Step]
"""Makes the step of a text that a parser kept."""


@attrs.frozen
class UnreadStep:
    """A step of which only the number is known as yet."""

    step: int
    text: bytes
    attempt: int = 0


@attrs.frozen
class UnreadSteps:
    """Steps of one attempt, each a number and the text that ``read`` makes the step of."""

    attempt: int
    read: ReadStep
    rows: Sequence[tuple[int, bytes]]

    def __iter__(self) -> Iterator[Step]:
        for _, text in self.rows:
            yield read_as(self.read, text, self.attempt)


def read_as(read: ReadStep, text: bytes, attempt: int) -> Step:
    """The step of a text, of that attempt."""
    step = read(text)
    return attrs.evolve(step, attempt=attempt) if attempt else step


class Found(Sequence[Step | Notice]):
    """Steps and notices in the order of the log.

    It is what any list of them is; who takes ``pieces`` instead can leave unread what will not be asked for.
    """

    def __init__(self) -> None:
        self.pieces: list[Step | Notice | UnreadSteps] = []

    def append(self, item: Step | Notice) -> None:
        """Add one that was read."""
        self.pieces.append(item)

    def append_unread(self, attempt: int, read: ReadStep, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add steps that can be read later."""
        self.pieces.append(UnreadSteps(attempt, read, rows))

    def __iter__(self) -> Iterator[Step | Notice]:
        for piece in self.pieces:
            if isinstance(piece, UnreadSteps):
                yield from piece
            else:
                yield piece

    def __len__(self) -> int:
        return sum(len(piece.rows) if isinstance(piece, UnreadSteps) else 1 for piece in self.pieces)

    @overload
    def __getitem__(self, index: int) -> Step | Notice: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step | Notice]: ...
    def __getitem__(self, index: int | slice) -> Step | Notice | list[Step | Notice]:
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Iterable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it grows
