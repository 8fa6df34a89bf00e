"""Tables as text: they fit a terminal's width without breaking a number, and print complete lines into a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import attrs
from rich.text import Text

from llmb.cli import output

GAP = "  "

ABSENT = "-"
"""A cell for a missing number, if an empty cell could look like an error."""

Cell = str | Text


@attrs.frozen
class Column:
    """A column of a table. If the terminal is too narrow, only columns with ``wraps`` are broken, down to that width.

    ``optional`` columns are dropped if the terminal is too narrow for all: first the empty columns, then the last.
    """

    title: str = ""
    right: bool = False
    wraps: int | None = None
    optional: bool = False
    style: str = ""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table as wide as the terminal, and name the columns that did not fit. Keep lines in a pipe complete."""
    console = output.console()
    width, rows = console.width if console.is_terminal else None, list(rows)
    for line in table_lines(columns, rows, width):
        console.print(line, soft_wrap=True)
    if missing := left_out(columns, rows, width):
        console.print(f"note: columns left out: {', '.join(missing)}; use a wider terminal or a pipe", soft_wrap=True)


def table_lines(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None = None) -> list[Text]:
    """Return the lines of a table, titles first. Without ``width`` the lines may be of any length."""
    cells = _cells(columns, rows)
    kept = _kept(columns, cells, width)
    columns, cells = [columns[each] for each in kept], _only(cells, kept)
    widths = _widths(columns, cells, width) or _least(columns, cells)
    lines = _row([Text(column.title, "bold") for column in columns], columns, widths, at_bottom=True)
    lines = lines if any(column.title for column in columns) else []
    return lines + [line for row in cells for line in _row(row, columns, widths)]


def left_out(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None) -> list[str]:
    """Return the titles of the columns that are not empty but do not fit."""
    cells = _cells(columns, rows)
    kept = _kept(columns, cells, width)
    return [column.title for at, column in enumerate(columns) if at not in kept and _is_filled(at, cells)]


def _cells(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> list[list[Text]]:
    return [[_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]


def _kept(columns: Sequence[Column], cells: Sequence[Sequence[Text]], width: int | None) -> list[int]:
    """Return the indices of the columns that are shown."""
    kept = list(range(len(columns)))
    if width is not None and _total(_natural(columns, cells)) > width:
        kept = [each for each in kept if not columns[each].optional or _is_filled(each, cells)]
    while _widths([columns[each] for each in kept], _only(cells, kept), width) is None:
        optional = [each for each in kept if columns[each].optional]
        if not optional:
            break
        kept.remove(optional[-1])
    return kept


def _is_filled(at: int, cells: Sequence[Sequence[Text]]) -> bool:
    return any(row[at].plain not in ("", ABSENT) for row in cells)


def _text(cell: Cell, column: Column) -> Text:
    text = output.without_escapes(cell if isinstance(cell, str) else cell.plain)
    return Text(" ".join(text.splitlines()), column.style if isinstance(cell, str) else cell.style)


def _only(rows: Sequence[Sequence[Text]], kept: Sequence[int]) -> list[list[Text]]:
    return [[row[each] for each in kept] for row in rows]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(len(column.title), *(len(row[at]) for row in rows), 0) for at, column in enumerate(columns)]


def _least(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    """Return the least widths: titles are broken between words, cells of wrapping columns down to ``wraps``."""
    least = []
    for at, column in enumerate(columns):
        widest = max((len(row[at]) for row in rows), default=0)
        title = max(map(len, column.title.split()), default=0)
        least.append(max(title, widest if column.wraps is None else min(widest, column.wraps)))
    return least


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int | None) -> list[int] | None:
    """Return the width of each column, or None if the columns do not fit. Give spare width to text, then to titles."""
    natural = _natural(columns, rows)
    if width is None or _total(natural) <= width:
        return natural
    widths = _least(columns, rows)
    spare = width - _total(widths)
    if spare < 0:
        return None
    for at in sorted(range(len(columns)), key=lambda each: columns[each].wraps is None):
        more = min(spare, natural[at] - widths[at])
        widths[at] += more
        spare -= more
    return widths


def _row(
    cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int], *, at_bottom: bool = False
) -> list[Text]:
    """Return one row as lines. With ``at_bottom``, cells of fewer lines are aligned at the bottom, as in titles."""
    last = len(cells) - 1
    broken = [_broken(cell, width, at == last) for at, (cell, width) in enumerate(zip(cells, widths, strict=True))]
    if at_bottom:
        height = max(map(len, broken))
        broken = [[Text("")] * (height - len(each)) + each for each in broken]
    lines = []
    for parts in zip_longest(*broken, fillvalue=Text("")):
        line = Text(GAP).join(
            _padded(part, width, column.right) for part, width, column in zip(parts, widths, columns, strict=True)
        )
        line.rstrip()
        lines.append(line)
    return lines


def _broken(cell: Text, width: int, last: bool) -> list[Text]:
    """Break a cell between words. Break within a word only if another column follows, so that paths can be copied."""
    if len(cell) <= width:
        return [cell]
    lines = textwrap.wrap(cell.plain, max(width, 1), break_long_words=not last, break_on_hyphens=not last)
    return [Text(line, cell.style) for line in lines]


def _padded(cell: Text, width: int, right: bool) -> Text:
    blanks = " " * (width - len(cell))
    return Text.assemble(blanks, cell) if right else Text.assemble(cell, blanks)
