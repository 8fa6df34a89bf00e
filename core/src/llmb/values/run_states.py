"""The states and verdicts of runs."""

from typing import Literal

RunState = Literal[
    "planned", "preparing", "submitting", "queued", "running", "completed", "failed", "cancelled", "timeout", "lost"
]
END_STATES: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timeout", "lost"})

Verdict = Literal["pass", "fail", "undecided"]

Until = Literal["ended", "submitted"]
"""The states of all runs at which a session stops."""
