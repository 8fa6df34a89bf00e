"""The steps of one run, in columns: some 60 bytes a step, where a Step with its figures takes 500."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import sub
from typing import overload

from llmb.values.steps import Step

_WIDTH = 5  # time, loss, TFLOP/s, tokens/s, mean_of
_ALL_STATED = (1 << _WIDTH) - 1


class _Column:
    """A figure that some steps have. One that was not printed is null, which is not NaN."""

    def __init__(self) -> None:
        self._values = array("d")
        self._stated = bytearray()

    def put(self, row: int, value: float) -> None:
        missing = row - len(self._stated)
        if missing < 0:
            self._values[row] = value
            self._stated[row] = 1
            return
        if missing:
            self._values.frombytes(bytes(8 * missing))
            self._stated.extend(bytes(missing))
        self._values.append(value)
        self._stated.append(1)

    def insert(self, row: int) -> None:
        if row < len(self._stated):
            self._values.insert(row, 0.0)
            self._stated.insert(row, 0)

    def clear(self, row: int) -> None:
        if row < len(self._stated):
            self._stated[row] = 0

    def get(self, row: int) -> float | None:
        return self._values[row] if row < len(self._stated) and self._stated[row] else None


class StepTable(Sequence[Step]):
    """A sequence of Steps in the order of their numbers, each number once. A Step is made when it is asked for."""

    def __init__(self, attempt: int = 0) -> None:
        self.attempt = attempt
        self._numbers = array("q")
        self._fields = array("d")  # _WIDTH for each step
        self._stated = bytearray()  # for each step, one bit for each of its fields
        self._figures: dict[str, _Column] = {}

    def put(self, step: Step) -> None:
        """Add a step, or replace the one of the same number."""
        fields = (step.time_s, step.loss, step.tflops_per_gpu, step.tokens_per_s_per_gpu, step.mean_of)
        stated = _ALL_STATED
        if None in fields:
            stated = sum((value is not None) << place for place, value in enumerate(fields))
        values = array("d", [0.0 if value is None else value for value in fields])
        numbers, row = self._numbers, len(self._numbers)
        if not row or step.step > numbers[-1]:
            numbers.append(step.step)
            self._fields.extend(values)
            self._stated.append(stated)
        else:
            row = self._row_within(step.step)
            self._fields[row * _WIDTH : (row + 1) * _WIDTH] = values
            self._stated[row] = stated
        figures = self._figures
        for name, value in step.figures.items():
            column = figures.get(name)
            if column is None:
                column = figures[name] = _Column()
            column.put(row, value)

    def _row_within(self, number: int) -> int:
        """The row of a step that is not the last, without what it held."""
        row = bisect_left(self._numbers, number)
        known = self._numbers[row] == number
        if not known:
            self._numbers.insert(row, number)
            self._fields[row * _WIDTH : row * _WIDTH] = array("d", bytes(8 * _WIDTH))
            self._stated.insert(row, 0)
        for column in self._figures.values():
            (column.clear if known else column.insert)(row)
        return row

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers alone."""
        return self._numbers

    @property
    def rhythm(self) -> int:
        """The distance between printed steps that is most common; 1 where there is none."""
        gaps = Counter(map(sub, self._numbers[1:], self._numbers))
        gap, seen = gaps.most_common(1)[0] if gaps else (1, 0)
        return gap if seen > 1 else 1

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        rows = range(len(self))[index]
        return self._step(rows) if isinstance(rows, int) else [self._step(row) for row in rows]

    def __iter__(self) -> Iterator[Step]:
        return map(self._step, range(len(self)))

    def _step(self, row: int) -> Step:
        values, stated = self._fields[row * _WIDTH : (row + 1) * _WIDTH], self._stated[row]
        time_s, loss, tflops, tokens, mean_of = (
            value if stated >> place & 1 else None for place, value in enumerate(values)
        )
        figures = ((name, column.get(row)) for name, column in self._figures.items())
        return Step(
            step=self._numbers[row],
            time_s=time_s,
            loss=loss,
            tflops_per_gpu=tflops,
            tokens_per_s_per_gpu=tokens,
            figures={name: value for name, value in figures if value is not None},
            mean_of=int(mean_of or 1),
            attempt=self.attempt,
        )
