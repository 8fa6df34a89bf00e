"""How a shared task stands, to the process that wants it."""

from __future__ import annotations

from typing import Literal

import attrs

from llmb.planning import TaskPlan
from llmb.values.job_status import Cause, JobStatus

TaskState = Literal["unknown", "missing", "running", "done", "failed"]
REDONE = 2  # times that a task is made again when what made it was killed
NOT_ITS_FAULT = ("lost", "preempted", "node failure", "cancelled")  # as of the run that it was begun for


@attrs.define
class TaskProgress:
    """How a task stands: what it said last or why it failed, what to do about that, and how often it was made anew.

    ``log`` is the end of the log of one that failed.
    """

    planned: TaskPlan
    state: TaskState = "unknown"
    reason: str = ""
    remedy: str = ""
    cause: Cause = ""
    redone: int = 0
    log: str = ""

    def fail(self, reason: str, remedy: str, cause: Cause = "failed") -> None:
        """It could not be made."""
        self.state, self.remedy, self.cause = "failed", remedy, cause
        self.reason = f"{self.planned.task.kind} could not be made: {reason}"

    def make_anew(self, status: JobStatus) -> bool:
        """Whether it is to be made once more, since what made it was ended for no fault of its own."""
        if self.redone == REDONE or not (status.state == "absent" or status.cause in NOT_ITS_FAULT):
            return False
        self.state, self.redone = "missing", self.redone + 1
        return True
