"""The table of recipes in README.md."""

from __future__ import annotations

from marked_part import replace_between

import llmb
from llmb.cli.views.recipes import LIST_COLUMNS, list_row

BEGIN, END = "<!-- recipes: written by tools/write_docs.py -->\n", "<!-- end of recipes -->\n"


def with_recipes(text: str) -> str:
    """Return the text with the table of the installed recipes between its two marks."""
    return replace_between(BEGIN, END, _table(), text)


def _table() -> str:
    titles = tuple(column.title for column in LIST_COLUMNS)
    rows = [titles, ("---",) * len(titles)]
    for recipe, older in llmb.fold_releases(llmb.list_recipes()):
        address, *others = list_row(recipe, older)
        rows.append((f"`{address}`", *others))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
