"""A plot of a page with its table."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from markupsafe import Markup


@attrs.frozen(kw_only=True)
class Table:
    """A table of texts. ``numeric`` has the indices of the columns to align to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int] = frozenset()

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[str]], *, text: Sequence[str] = ()) -> Table:
        """Return a table in which all columns are numeric except those in ``text``."""
        numeric = frozenset(index for index, column in enumerate(columns) if column not in text)
        return cls(columns=columns, rows=rows, numeric=numeric)


@attrs.frozen
class Key:
    """One entry of a legend: the class of its mark, and its text."""

    mark: str
    text: str


@attrs.frozen(kw_only=True)
class Plot:
    """An SVG with title, legend and table."""

    name: str
    title: str
    svg: Markup
    table: Table
    keys: Sequence[Key] = ()
    note: str = ""
