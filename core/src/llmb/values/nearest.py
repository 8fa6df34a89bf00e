"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_name(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of ``names`` that is most like ``name``, or null where none is near."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)), None)
