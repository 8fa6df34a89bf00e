"""The steps of one run, in columns: some 60 bytes a step, where a Step with its figures takes 500.

Steps of which only the number was read are kept as the text that they were printed in, until that is asked for; of much
text the columns are made, which take less room.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import attrs

from llmb.logs.found import ReadStep, UnreadSteps, read_as
from llmb.values.steps import Step, rhythm

MOST_UNREAD = 8 << 20
"""Bytes of text that are kept unread."""

_WIDTH = 5  # time, loss, TFLOP/s, tokens/s, mean_of


class _Figures:
    """What else each step printed: its values in one array, and which names they have, alike for most steps."""

    def __init__(self) -> None:
        self._values = array("d")
        self._places = array("q")  # of each step's first value
        self._room = array("q")  # for how many there is place
        self._kinds = array("q")  # of each step's names
        self._names: list[tuple[str, ...]] = []
        self._kind_of: dict[tuple[str, ...], int] = {}

    def append(self, figures: Mapping[str, float]) -> None:
        self._kinds.append(self._kind(tuple(figures)))
        self._places.append(len(self._values))
        self._room.append(len(figures))
        self._values.extend(figures.values())

    def insert(self, row: int) -> None:
        """A step that has printed nothing as yet."""
        self._kinds.insert(row, self._kind(()))
        self._places.insert(row, 0)
        self._room.insert(row, 0)

    def replace(self, row: int, figures: Mapping[str, float]) -> None:
        self._kinds[row] = self._kind(tuple(figures))
        if len(figures) > self._room[row]:
            self._places[row], self._room[row] = len(self._values), len(figures)
            self._values.extend(figures.values())
        else:
            place = self._places[row]
            self._values[place : place + len(figures)] = array("d", figures.values())

    def get(self, row: int) -> dict[str, float]:
        place, names = self._places[row], self._names[self._kinds[row]]
        return dict(zip(names, self._values[place : place + len(names)], strict=True))

    def _kind(self, names: tuple[str, ...]) -> int:
        kind = self._kind_of.get(names)
        if kind is None:
            kind = self._kind_of[names] = len(self._names)
            self._names.append(names)
        return kind


class StepTable(Sequence[Step]):
    """A sequence of Steps in the order of their numbers, each number once. A Step is made when it is asked for."""

    def __init__(self, attempt: int = 0) -> None:
        self.attempt = attempt
        self._numbers = array("q")
        self._fields = array("d")  # _WIDTH for each step
        self._stated = bytearray()  # for each step, one bit for each of its fields
        self._figures = _Figures()
        self._unread: dict[int, bytes] = {}
        self._unread_size = 0  # bytes, at most: with what was replaced meanwhile
        self._read: ReadStep | None = None
        self._in_order: Sequence[int] | None = None  # all numbers, once they were asked for

    def put_unread(self, steps: UnreadSteps) -> None:
        """Add steps, or replace those of the same numbers, without reading them."""
        if self._read != steps.read:
            self.read_all()
            self._read = steps.read
        self._in_order = None
        self._unread.update(steps.rows)
        self._unread_size += sum(len(text) for _, text in steps.rows)
        if self._unread_size > MOST_UNREAD:
            self._unread_size = sum(map(len, self._unread.values()))
            if self._unread_size > MOST_UNREAD // 2:
                self.read_all()

    def read_all(self) -> None:
        """Read what is kept unread. Where the parser fails at that, what it was to read is dropped, up to the last."""
        unread, self._unread, self._unread_size, self._in_order = self._unread, {}, 0, None
        for number in sorted(unread):
            self.put(self._read_text(unread[number]))

    def _read_text(self, text: bytes) -> Step:
        assert self._read is not None
        return read_as(self._read, text, self.attempt)

    def put(self, step: Step) -> None:
        """Add a step, or replace the one of the same number."""
        self._in_order = None
        self._unread.pop(step.step, None)
        time_s, loss = step.time_s, step.loss
        tflops, tokens = step.tflops_per_gpu, step.tokens_per_s_per_gpu
        stated = (
            (time_s is not None)
            | (loss is not None) << 1
            | (tflops is not None) << 2
            | (tokens is not None) << 3
            | 1 << 4  # mean_of
        )
        values = array("d", (time_s or 0.0, loss or 0.0, tflops or 0.0, tokens or 0.0, step.mean_of or 0))
        numbers, row = self._numbers, len(self._numbers)
        if not row or step.step > numbers[-1]:
            numbers.append(step.step)
            self._fields.extend(values)
            self._stated.append(stated)
            self._figures.append(step.figures)
        else:
            row = self._row_within(step.step)
            self._fields[row * _WIDTH : (row + 1) * _WIDTH] = values
            self._stated[row] = stated
            self._figures.replace(row, step.figures)

    def _row_within(self, number: int) -> int:
        """The row of a step that is not the last, without what it held."""
        row = bisect_left(self._numbers, number)
        if self._numbers[row] != number:
            self._numbers.insert(row, number)
            self._fields[row * _WIDTH : row * _WIDTH] = array("d", bytes(8 * _WIDTH))
            self._stated.insert(row, 0)
            self._figures.insert(row)
        return row

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers alone."""
        if self._in_order is None:
            self._in_order = sorted({*self._numbers, *self._unread}) if self._unread else self._numbers
        return self._in_order

    @property
    def rhythm(self) -> int:
        """See `llmb.values.steps.rhythm`."""
        return rhythm(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        numbers = self.numbers[index]
        return self._step(numbers) if isinstance(numbers, int) else [self._step(number) for number in numbers]

    def __iter__(self) -> Iterator[Step]:
        return map(self._step, self.numbers)

    def _step(self, number: int) -> Step:
        text = self._unread.get(number)
        step = self._step_in_row(bisect_left(self._numbers, number)) if text is None else self._read_text(text)
        return step if step.mean_of else attrs.evolve(step, mean_of=self._since_before(number))

    def _since_before(self, number: int) -> int:
        """How many steps were run since the one printed before; as many as usual before the first one."""
        row = bisect_left(self.numbers, number)
        return number - self.numbers[row - 1] if row else max(1, min(number, self.rhythm))

    def _step_in_row(self, row: int) -> Step:
        values, stated = self._fields[row * _WIDTH : (row + 1) * _WIDTH], self._stated[row]
        time_s, loss, tflops, tokens, mean_of = (
            value if stated >> place & 1 else None for place, value in enumerate(values)
        )
        return Step(
            step=self._numbers[row],
            time_s=time_s,
            loss=loss,
            tflops_per_gpu=tflops,
            tokens_per_s_per_gpu=tokens,
            figures=self._figures.get(row),
            mean_of=int(mean_of or 0) or None,
            attempt=self.attempt,
        )
