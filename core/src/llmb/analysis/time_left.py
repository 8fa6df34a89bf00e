"""The time that the remaining steps of a run take, and the steps until a time limit."""

import statistics
from collections.abc import Sequence

from llmb.analysis.measuring_window import ENOUGH, known_times_s
from llmb.values.steps import Step

RECENT_STEPS = 20
"""Steps whose median time gives the time left."""

WARM_UP_STEPS = 4
"""Steps before the time left is shown. The first times are wrong: compilation, asynchronous dispatch."""

MARGIN = 0.05
"""Relative error of an estimated time: a time limit that falls short by less may suffice."""

LOG_LAG_S = 30.0
"""Time for which steps that are done may be missing in the copy of a log."""


def estimate_duration_s(steps: Sequence[Step], count: int) -> float | None:
    """Return the seconds that ``count`` further steps take at the recent speed, or None if too few steps are known."""
    recent = known_times_s(steps[-RECENT_STEPS:])
    return max(0, count) * statistics.median(recent) if len(recent) >= WARM_UP_STEPS else None


def find_limit_step(steps: Sequence[Step], done: int, requested: int, time_left_s: float) -> int | None:
    """Return the last of ``requested`` steps that ends within the time left at the recent speed.

    Return None if the time may suffice for all steps, or if too few steps are known after the warm-up.
    """
    recent = known_times_s(steps[max(WARM_UP_STEPS, len(steps) - RECENT_STEPS) :])
    if len(recent) < ENOUGH:
        return None
    step_time_s = statistics.median(recent)
    unprinted_s = step_time_s * max(1, steps[-1].step - steps[-2].step)
    missing_s = step_time_s * (requested - done) - time_left_s
    if missing_s <= MARGIN * time_left_s + LOG_LAG_S + unprinted_s:
        return None
    return done + max(0, int(time_left_s / step_time_s))
