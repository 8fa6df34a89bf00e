"""Numbers that may be absent."""

from __future__ import annotations

import math
from typing import Any

Bounds = tuple[float, float]
"""The smallest and the largest figure that can be."""

STEP_TIME_S: Bounds = (1e-6, 1e7)
"""A step of less than a microsecond launches no kernel; one of 1e7 s takes 116 days."""

TFLOPS_PER_GPU: Bounds = (1e-6, 1e6)
"""1e6 is some hundred times the dense peak of any GPU; 1e-6, a MFLOP/s, is below what any processor reaches."""


def stated(value: float | None) -> float | None:
    """The value, or None where there is none: NaN is what a log prints when it has no figure, and infinity is none."""
    return None if value is None or not math.isfinite(value) else value


def possible(value: float | None, bounds: Bounds) -> float | None:
    """The value, or None where it is none that can be, NaN among them."""
    return value if value is not None and bounds[0] <= value <= bounds[1] else None


def stated_only(value: Any) -> Any:
    """The same, in tables too, with None in place of what JSON has no number for: NaN and infinity."""
    if isinstance(value, dict):
        return {key: stated_only(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
