"""Tables and their numbers as text: a table fits a terminal's width, and is complete in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import attrs
from rich.text import Text

import llmb
from llmb.cli import output

GAP = "  "

ABSENT = "-"
"""A cell for a missing number, if an empty cell could look like an error."""

Cell = str | Text


@attrs.frozen
class Column:
    """A column of a table.

    If the terminal is too narrow, only cells of columns with ``wraps`` are broken, down to that number of characters.

    ``optional`` columns are dropped if the terminal is too narrow for all: first the empty columns, then each that does
    not fit beside those before it.
    """

    title: str = ""
    right: bool = False
    wraps: int | None = None
    optional: bool = False
    style: str = ""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table as wide as the terminal, and name the columns that did not fit. Keep lines in a pipe complete."""
    console = output.console()
    lines, note = lay_out_table(columns, rows, console.width if console.is_terminal else None)
    if lines:
        console.print(*lines, sep="\n", soft_wrap=True)  # one call: for thousands of steps, a call for each is slow
    if note:
        output.print_prose(f"note: {note}")


def lay_out_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None = None
) -> tuple[list[Text], str]:
    """Return the lines of a table, titles first, and a note on the columns with values that do not fit, if any.

    Without ``width`` the lines may be of any length.
    """
    filled = _filled(columns, rows)
    kept = _fitting(filled, width)
    widths = _widths(kept, width) or [each.least_width for each in kept]
    lines = _row([Text(each.column.title, "bold") for each in kept], kept, widths, at_bottom=True)
    lines = lines if any(each.column.title for each in kept) else []
    cells = zip(*(each.cells for each in kept), strict=True)
    lines += [line for row in cells for line in _row(row, kept, widths)]
    missing = [each.column.title for each in filled if each not in kept and not each.is_empty]
    return lines, f"columns left out: {', '.join(missing)}; use a wider terminal or a pipe" if missing else ""


@attrs.frozen(eq=False)
class _FilledColumn:
    """A column with its cells."""

    column: Column
    cells: Sequence[Text]

    @property
    def is_empty(self) -> bool:
        """True if no cell has a value."""
        return all(cell.plain in ("", ABSENT) for cell in self.cells)

    @property
    def natural_width(self) -> int:
        """The width at which nothing is broken."""
        return max(len(self.column.title), *map(len, self.cells), 0)

    @property
    def least_width(self) -> int:
        """The width with the title broken between words, and the cells of a wrapping column down to ``wraps``."""
        widest = max(map(len, self.cells), default=0)
        title = max(map(len, self.column.title.split()), default=0)
        return max(title, widest if self.column.wraps is None else min(widest, self.column.wraps))


def _filled(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> list[_FilledColumn]:
    cells = [[_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]
    return [_FilledColumn(column, [row[at] for row in cells]) for at, column in enumerate(columns)]


def _text(cell: Cell, column: Column) -> Text:
    if isinstance(cell, str):
        return Text(llmb.printable_line(cell), column.style)
    return Text(llmb.printable_line(cell.plain), cell.style)


def _fitting(columns: Sequence[_FilledColumn], width: int | None) -> list[_FilledColumn]:
    """Return the columns that are shown: if there is not enough room, those that must be, and the others that fit."""
    shown = list(columns)
    if width is not None and _total([each.natural_width for each in shown]) > width:
        shown = [each for each in shown if not (each.column.optional and each.is_empty)]
    if _widths(shown, width) is not None:
        return shown
    kept = [each for each in shown if not each.column.optional]
    for column in (each for each in shown if each.column.optional):
        wider = [each for each in shown if each in kept or each is column]
        kept = wider if _widths(wider, width) is not None else kept
    return kept


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[_FilledColumn], width: int | None) -> list[int] | None:
    """Return the width of each column, or None if the columns do not fit. Give spare width to text, then to titles."""
    natural = [each.natural_width for each in columns]
    if width is None or _total(natural) <= width:
        return natural
    widths = [each.least_width for each in columns]
    spare = width - _total(widths)
    if spare < 0:
        return None
    for at in sorted(range(len(columns)), key=lambda each: columns[each].column.wraps is None):
        more = min(spare, natural[at] - widths[at])
        widths[at] += more
        spare -= more
    return widths


def _row(
    cells: Sequence[Text], columns: Sequence[_FilledColumn], widths: Sequence[int], *, at_bottom: bool = False
) -> list[Text]:
    """Return one row as lines. With ``at_bottom``, cells of fewer lines are aligned at the bottom, as in titles."""
    last = len(cells) - 1
    broken = [_broken(cell, width, at == last) for at, (cell, width) in enumerate(zip(cells, widths, strict=True))]
    if at_bottom:
        height = max(map(len, broken))
        broken = [[Text("")] * (height - len(each)) + each for each in broken]
    lines = []
    for parts in zip_longest(*broken, fillvalue=Text("")):
        line = Text()
        for part, width, each in zip(parts, widths, columns, strict=True):
            blanks = " " * (width - len(part))
            for piece in (blanks, part, GAP) if each.column.right else (part, blanks, GAP):
                line.append(piece)
        line.rstrip()
        lines.append(line)
    return lines


def _broken(cell: Text, width: int, last: bool) -> list[Text]:
    """Break a cell between words. Break within a word only if another column follows, so that paths can be copied."""
    if len(cell) <= width:
        return [cell]
    lines = output.break_prose(cell.plain, width) if last else textwrap.wrap(cell.plain, max(width, 1))
    return [Text(line, cell.style) for line in lines]
