"""The table of recipes in README.md."""

from __future__ import annotations

import llmb
from llmb.cli.views.recipes import LIST_COLUMNS, list_row

BEGIN, END = "<!-- recipes: written by tools/write_docs.py -->\n", "<!-- end of recipes -->\n"


def with_recipes(text: str) -> str:
    """Return the text with the table of the installed recipes between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md lacks the marks {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + "\n" + _table() + "\n" + END + after


def _table() -> str:
    titles = tuple(column.title for column in LIST_COLUMNS)
    rows = [titles, ("---",) * len(titles)]
    for recipe, older in llmb.fold_releases(llmb.list_recipes()):
        address, *others = list_row(recipe, older)
        rows.append((f"`{address}`", *others))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
