"""A plot of a page with its table."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from markupsafe import Markup


@attrs.frozen(kw_only=True)
class Table:
    """A table. Its columns are aligned to the right, as numbers are, except those named in ``text``."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: Sequence[str] = ()


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
