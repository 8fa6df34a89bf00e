"""The time that a training still needs, for the live view."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from llmb.analysis.valid_range import STEP_TIME_S, possible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llmb.values.steps import Step

RECENT_STEPS = 20
"""Steps whose median time gives the time left."""

WARM_UP_STEPS = 4
"""Steps before the time left is shown. The first times are wrong: compilation, asynchronous dispatch."""


def estimate_time_left_s(steps: Sequence[Step], steps_left: int) -> float | None:
    """Return the seconds that the remaining steps take at the recent speed, or None if too few steps are known."""
    times = (possible(each.time_s, STEP_TIME_S) for each in steps[-RECENT_STEPS:])
    recent = [time_s for time_s in times if time_s is not None]
    return max(0, steps_left) * statistics.median(recent) if len(recent) >= WARM_UP_STEPS else None
