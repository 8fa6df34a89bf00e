"""The known name that is most similar to a mistyped one, for "did you mean"."""

import difflib
import functools
from collections.abc import Iterable

SHORTEST_BEGINNING = 3
"""The fewest letters that are matched with the beginning of a name."""


def nearest_name(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the most similar of ``names``, else the shortest that begins with ``name``, else None. Ignore case."""
    return _nearest_name(name, tuple(names), cutoff)


@functools.lru_cache(maxsize=1024)  # each run of a sweep has the same errors
def _nearest_name(name: str, names: tuple[str, ...], cutoff: float) -> str | None:
    word, known = name.lower(), {each.lower(): each for each in names}
    near = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    if not near and len(word) >= SHORTEST_BEGINNING:
        near = sorted((each for each in known if each.startswith(word)), key=len)
    return known[near[0]] if near else None
