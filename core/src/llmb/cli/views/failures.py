"""The cause of a failed run as rows of a table."""

from __future__ import annotations

import llmb


def failure_rows(failure: llmb.Failure | None) -> list[tuple[str, str]]:
    """Return the cause, the process that failed first, the line of the log, who can fix the cause, and the remedy."""
    if failure is None:
        return []
    line = f" (line {failure.line})" if failure.line else ""
    rows = [
        ("cause", failure.cause),
        ("failed on", describe_process(failure)),
        ("log", f"{failure.evidence}{line}" if failure.evidence else ""),
        ("origin", failure.origin or ""),
        ("remedy", failure.remedy),
    ]
    return [(name, value) for name, value in rows if value]


def describe_process(failure: llmb.Failure) -> str:
    """Return the rank and the host of the process that failed first, or "" if both are unknown."""
    rank = "" if failure.rank is None else f"rank {failure.rank}"
    return ", ".join(filter(None, (rank, failure.host)))
