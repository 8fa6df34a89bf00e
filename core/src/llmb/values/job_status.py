"""What a scheduler says of what it was given, and how a run stands."""

from __future__ import annotations

from typing import Literal

import attrs

from llmb.values.typed import typed_fields

RunState = Literal[
    "planned", "preparing", "submitting", "queued", "running", "completed", "failed", "cancelled", "timeout", "lost"
]
END_STATES: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timeout", "lost"})

Verdict = Literal["pass", "fail", "undecided"]

JobState = Literal["absent", "unknown", "pending", "running", "ended"]
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
    "impossible",
    "refused",
]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class JobHandle:
    """Names something submitted by the run's (or task's) own id; without ``job_id`` the scheduler looks for it.

    ``refused`` is why the scheduler did not take it, and ``remedy`` what to do about that; then there is no job.
    """

    id: str
    directory: str
    job_id: str | None = None
    refused: str = ""
    remedy: str = ""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class JobStatus:
    """How one job stands. ``absent``: asked, and not there. Where one cannot ask, TargetError is raised instead.

    ``unknown``: of this job alone it cannot be told yet, since the scheduler's accounts lag behind. A pending job with
    a cause will never start: it is to be cancelled. ``attempt`` counts restarts by the scheduler; each attempt writes
    logs of its own. ``remedy`` is what to do about an end that the scheduler knows more of than the core.
    """

    state: JobState
    job_id: str | None = None
    cause: Cause = ""
    exit_code: int | None = None
    reason: str = ""
    remedy: str = ""
    attempt: int = 0

    @property
    def unsatisfiable(self) -> bool:
        """Whether the job waits in vain."""
        return self.state == "pending" and bool(self.cause)
