"""The name that a misspelt name was probably meant for."""

import difflib
from collections.abc import Iterable

SHORTEST_BEGINNING = 3
"""The fewest letters that are matched with the beginning of a name."""


def nearest_name(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar of ``names``, else the shortest that begins with ``name``, else None. Ignore case."""
    word, known = name.lower(), {each.lower(): each for each in names}
    near = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    if not near and len(word) >= SHORTEST_BEGINNING:
        near = sorted((each for each in known if each.startswith(word)), key=len)
    return known[near[0]] if near else None
