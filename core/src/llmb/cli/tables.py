"""Tables as text: within a terminal's width without breaking a figure, in whole lines where the output is piped."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import attrs
from rich.console import Console
from rich.text import Text

GAP = "  "

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?|[\x00-\x08\x0e-\x1f\x7f]")
"""Colours, titles and other orders to a terminal, which a log's line may have: they are not for ours."""

ABSENT = "-"
"""A cell for a figure that is not there, where a blank could be taken for a slip."""

Cell = str | Text


@attrs.frozen
class Column:
    """A column of figures or names, which is never broken, unless ``wraps`` says down to which width it may be.

    ``optional`` columns give way where a terminal is too narrow for all: those that are empty, then the last.
    """

    title: str = ""
    right: bool = False
    wraps: int | None = None
    optional: bool = False
    style: str = ""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """To the terminal's width, and what it has no room for; piped output is for programs, so its lines are whole."""
    console = Console(highlight=False)
    width, rows = console.width if console.is_terminal else None, list(rows)
    for line in table_lines(columns, rows, width):
        console.print(line, soft_wrap=True)
    if missing := left_out(columns, rows, width):
        console.print(f"note: no room here for {', '.join(missing)}; a wider terminal has it, and so has a pipe")


def table_lines(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None = None) -> list[Text]:
    """The lines, with the titles first where there are any; None is any width."""
    cells = _cells(columns, rows)
    kept = _kept(columns, cells, width)
    columns, cells = [columns[each] for each in kept], _only(cells, kept)
    widths = _widths(columns, cells, width) or _least(columns, cells)
    lines = _row([Text(column.title, "bold") for column in columns], columns, widths, down=True)
    lines = lines if any(column.title for column in columns) else []
    return lines + [line for row in cells for line in _row(row, columns, widths)]


def left_out(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None) -> list[str]:
    """The titles of the columns that hold something and find no room."""
    cells = _cells(columns, rows)
    kept = _kept(columns, cells, width)
    return [column.title for at, column in enumerate(columns) if at not in kept and _holds_something(at, cells)]


def _cells(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> list[list[Text]]:
    return [[_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in rows]


def _kept(columns: Sequence[Column], cells: Sequence[Sequence[Text]], width: int | None) -> list[int]:
    """Which columns are shown."""
    kept = list(range(len(columns)))
    if width is not None and _total(_natural(columns, cells)) > width:
        kept = [each for each in kept if not columns[each].optional or _holds_something(each, cells)]
    while _widths([columns[each] for each in kept], _only(cells, kept), width) is None:
        optional = [each for each in kept if columns[each].optional]
        if not optional:
            break
        kept.remove(optional[-1])
    return kept


def _holds_something(at: int, cells: Sequence[Sequence[Text]]) -> bool:
    return any(row[at].plain not in ("", ABSENT) for row in cells)


def _text(cell: Cell, column: Column) -> Text:
    text = ESCAPES.sub("", cell if isinstance(cell, str) else cell.plain)
    return Text(" ".join(text.splitlines()), column.style if isinstance(cell, str) else cell.style)


def _only(rows: Sequence[Sequence[Text]], kept: Sequence[int]) -> list[list[Text]]:
    return [[row[each] for each in kept] for row in rows]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(len(column.title), *(len(row[at]) for row in rows), 0) for at, column in enumerate(columns)]


def _least(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    """Titles are broken between words, wrapping columns to their least; nothing else is."""
    least = []
    for at, column in enumerate(columns):
        widest = max((len(row[at]) for row in rows), default=0)
        title = max(map(len, column.title.split()), default=0)
        least.append(max(title, widest if column.wraps is None else min(widest, column.wraps)))
    return least


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int | None) -> list[int] | None:
    """The width of each column, or None where they do not fit. What is to spare goes to text, then to titles."""
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


def _row(cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int], *, down: bool = False) -> list[Text]:
    """One row as lines; ``down``: cells of fewer lines stand at the bottom, as titles do."""
    last = len(cells) - 1
    broken = [_broken(cell, width, at == last) for at, (cell, width) in enumerate(zip(cells, widths, strict=True))]
    if down:
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
    """Between words; within a word only where another column follows, so that a path can be copied whole."""
    if len(cell) <= width:
        return [cell]
    lines = textwrap.wrap(cell.plain, max(width, 1), break_long_words=not last, break_on_hyphens=not last)
    return [Text(line, cell.style) for line in lines]


def _padded(cell: Text, width: int, right: bool) -> Text:
    blanks = " " * (width - len(cell))
    return Text.assemble(blanks, cell) if right else Text.assemble(cell, blanks)
