"""Logs that cannot be those of one run, because their step times differ."""

import statistics
from collections.abc import Mapping
from typing import Final

from llmb.analysis.slow_ranks import common_steps
from llmb.analysis.steady_state import MIN_STEPS

SAME_RUN: Final = 0.1
"""The largest relative difference of the median step times of two ranks of one run: each step waits for all ranks."""


def describe_disagreement(logs: Mapping[str, Mapping[int, float]]) -> str:
    """Return why logs, given by their step times (s), are not those of one run's ranks, or "" if they may be."""
    steps = common_steps(list(logs.values())) if len(logs) > 1 else []
    if len(steps) < MIN_STEPS:
        return ""
    medians = {name: statistics.median(times_s[step] for step in steps) for name, times_s in logs.items()}
    fast, slow = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    fast_s, slow_s = medians[fast], medians[slow]
    if slow_s <= fast_s * (1 + SAME_RUN):
        return ""
    return f"the logs are not of one run: a step takes {fast_s:.4g} s in {fast} and {slow_s:.4g} s in {slow}"
