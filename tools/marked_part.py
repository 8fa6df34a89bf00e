"""The part of a page between two marks."""

from __future__ import annotations


def replace_between(begin: str, end: str, new: str, page: str) -> str:
    """Return the page with another text between its marks. Exit with an error if a mark is missing."""
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"a page lacks the marks {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{new}\n{end}{after}"
