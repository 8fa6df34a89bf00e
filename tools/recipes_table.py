"""The table of recipes in README.md."""

from __future__ import annotations

import llmb
from llmb.cli.views.recipes import list_row

BEGIN, END = "<!-- recipes: written by tools/write_docs.py -->\n", "<!-- end of recipes -->\n"


def with_recipes(text: str) -> str:
    """Return the text with the table of the installed recipes between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md lacks the marks {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + "\n" + _table() + "\n" + END + after


def _table() -> str:
    rows = [("recipe", "GPU types", "dtypes", "GPUs", "release", "description", "baselines"), ("---",) * 7]
    for recipe in llmb.list_recipes():
        address, *others = list_row(recipe)
        baselines = sum(point.baseline is not None for point in recipe.points)
        rows.append((f"`{address}`", *others, f"{baselines} of {len(recipe.points)}" if baselines else "none"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
