"""What a scheduler says of what it was given, and how a run stands."""

from __future__ import annotations

from typing import Literal

import attrs

RunState = Literal[
    "planned", "preparing", "submitting", "queued", "running", "completed", "failed", "cancelled", "timeout", "lost"
]
END_STATES: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timeout", "lost"})

Verdict = Literal["pass", "fail", "undecided"]

JobState = Literal["absent", "pending", "running", "ended"]
Cause = Literal[
    "",
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "lost",
    "out of memory",
    "preempted",
    "node failure",
    "launch failure",
    "dependency",
    "deadline",
]


@attrs.frozen(kw_only=True)
class Ticket:
    """Names something submitted by the run's (or task's) own id; without ``job_id`` the scheduler looks for it."""

    id: str
    directory: str
    job_id: str | None = None


@attrs.frozen(kw_only=True)
class JobStatus:
    """How one job stands. ``absent``: asked, and not there. Where one cannot ask, TargetError is raised instead.

    ``attempt`` counts restarts by the scheduler; each attempt writes logs of its own.
    """

    state: JobState
    job_id: str | None = None
    cause: Cause = ""
    exit_status: int | None = None
    reason: str = ""
    attempt: int = 0
