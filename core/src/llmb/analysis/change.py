"""Change of the step time between two groups of runs, with a margin that separates the change from noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from llmb.analysis.mann_whitney import mann_whitney_p
from llmb.analysis.margins import Group, margin_of_change
from llmb.analysis.verdict import Repeat, steady_states_of, windows_of

Call = Literal["slower", "faster", "none"]

LEAST_VALUES = 4
"""Values per side without which the rank test cannot show a difference at 0.05."""


@attrs.frozen(kw_only=True)
class Change:
    """Change from A to B as a fraction of A's step time. ``p`` is that of the rank test, None for few runs."""

    a_s: float
    b_s: float
    change: float
    margin: float
    call: Call
    p: float | None


def kept_indices(repeats: Sequence[Repeat]) -> list[int]:
    """Return the indices of the runs that count: those whose window represents the steady state, or else all."""
    return [index for index, repeat in enumerate(repeats) if not repeat.is_off] or list(range(len(repeats)))


def compare_repeats(a: Sequence[Repeat], b: Sequence[Repeat]) -> Change:
    """Compare the runs that count. If all windows of a side are off, the steady states must show the same change."""
    kept_a, kept_b = ([side[index] for index in kept_indices(side)] for side in (a, b))
    change = _compare(windows_of(kept_a), windows_of(kept_b))
    if any(repeat.is_off for repeat in (*kept_a, *kept_b)):
        steady = _compare(steady_states_of(kept_a), steady_states_of(kept_b))
        return change if steady.call == change.call else attrs.evolve(change, call="none")
    return change


def _direction(change: float, margin: float) -> Call:
    """Return the direction of a change that is larger than its margin."""
    if abs(change) <= margin:
        return "none"
    return "slower" if change > 0 else "faster"


def _compare(a: Group, b: Group) -> Change:
    change, margin = b.mean_s / a.mean_s - 1, margin_of_change(a, b)
    enough = min(len(a), len(b)) >= LEAST_VALUES
    p = mann_whitney_p(a.times_s, b.times_s) if enough else None
    return Change(a_s=a.mean_s, b_s=b.mean_s, change=change, margin=margin, call=_direction(change, margin), p=p)
