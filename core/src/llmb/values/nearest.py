"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_name(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of ``names`` that is most like ``name``, whether large or small letters; null where none is near."""
    known = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=cutoff)
    return known[near[0]] if near else None
