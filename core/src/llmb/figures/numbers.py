"""Numbers that may be absent."""

from __future__ import annotations

import math
from typing import Any


def stated(value: float | None) -> float | None:
    """The value, or None where there is none: NaN is what a log prints when it has no figure."""
    return None if value is None or math.isnan(value) else value


def stated_only(value: Any) -> Any:
    """The same, in tables too, with None in place of what JSON has no number for: NaN and infinity."""
    if isinstance(value, dict):
        return {key: stated_only(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
