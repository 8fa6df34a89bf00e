"""The number of further repeats that would decide an undecided verdict."""

from llmb.analysis.margins import Group, margin_of_mean

MAX_REPEATS = 10
"""Upper limit of the number of repeats that llmb recommends."""


def repeats_to_settle(group: Group, distance: float) -> int:
    """Return how many more runs would reduce the relative margin to ``distance``, or 0 if more than `MAX_REPEATS`."""
    return next((more for more in range(1, MAX_REPEATS + 1) if margin_of_mean(group, more=more) <= distance), 0)
