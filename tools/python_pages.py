"""The pages of the Python API, from the table of public names in docs/plugins.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"

LIBRARY = ("the library", "events", "errors", "text for a terminal")
"""The rows of the table for programs that call llmb. The others are for authors of plugins."""

INTRODUCTIONS = {
    "python.md": """\
# Python: the library

`import llmb` gives a program everything that the command line does. The names on this page and on the page for
[authors of plugins](python-plugins.md) are public. Other names may change at any time.
""",
    "python-plugins.md": """\
# Python: for plugins

The classes and functions that plugins import from `llmb`. [Publish a plugin](plugins.md) explains how they belong
together, and the [hook reference](hooks.md) has an example of each hook.
""",
}
MARK = "<!-- written by tools/write_docs.py from the table of public names in docs/plugins.md -->\n"


def pages() -> dict[Path, str]:
    """Return the text of both pages, by path."""
    rows = list(public_names())
    library = [row for row in rows if row[0] in LIBRARY]
    library.sort(key=lambda row: LIBRARY.index(row[0]))
    plugins = [row for row in rows if row[0] not in LIBRARY]
    return {
        DOCS / "python.md": _page("python.md", library),
        DOCS / "python-plugins.md": _page("python-plugins.md", plugins),
    }


def public_names() -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the table: what the names are for, and the names."""
    table = (DOCS / "plugins.md").read_text().partition("## Public names")[2].partition("| for |")[2]
    for line in table.splitlines():
        if names := re.findall(r"`(\w+)`", line):
            yield line.split("|")[1].strip(), names


def _page(name: str, rows: Sequence[tuple[str, list[str]]]) -> str:
    sections = (
        f"## {title[0].upper()}{title[1:]}\n\n" + "".join(f"::: llmb.{each}\n\n" for each in names)
        for title, names in rows
    )
    return INTRODUCTIONS[name] + "\n" + MARK + "\n" + "\n".join(sections).rstrip() + "\n"
