"""Numbers that may be absent."""

from __future__ import annotations

import math


def stated(value: float | None) -> float | None:
    """The value, or None where there is none: NaN is what a log prints when it has no figure."""
    return None if value is None or math.isnan(value) else value
