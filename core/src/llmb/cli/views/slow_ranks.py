"""Ranks and hosts that are slower than the rest, as rows of a table."""

from __future__ import annotations

import llmb
from llmb.cli.views.numbers import counted, first_names

MOST_NAMED = 8
"""Slow ranks that are named."""


def slow_rank_rows(comparison: llmb.RankComparison | None) -> list[tuple[str, str]]:
    """Return the slow hosts, the slow ranks, and what the job would gain without them."""
    if comparison is None:
        return []
    if not comparison.slow_ranks and not comparison.slow_hosts:
        return [("slow ranks", f"none of {comparison.ranks}, over {comparison.steps} steps")]
    hosts = [f"{each.host} {_percent(each.excess)} ({counted(each.ranks, 'rank')})" for each in comparison.slow_hosts]
    named = {each.host for each in comparison.slow_hosts}
    ranks = [_describe(each) for each in comparison.slow_ranks if each.host not in named]
    rows = [
        ("slow nodes", ", ".join(hosts)),
        ("slow ranks", first_names(ranks, MOST_NAMED)),
        ("gain", f"{100 * comparison.gain:.1f} % of the step time without them"),
    ]
    return [(name, value) for name, value in rows if value]


def _describe(slow: llmb.SlowRank) -> str:
    place = f" on {slow.host}" if slow.host and slow.rank is not None else slow.host or ""
    return f"{'' if slow.rank is None else f'rank {slow.rank}'}{place} {_percent(slow.excess)}"


def _percent(excess: float) -> str:
    return f"+{100 * excess:.1f} %"
