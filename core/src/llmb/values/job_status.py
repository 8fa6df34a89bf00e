"""The status of jobs as a scheduler reports it."""

from typing import Literal

import attrs

from llmb.values.causes import Cause
from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import NonNegativeInt

JobState = Literal["absent", "unknown", "pending", "running", "ended"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class JobHandle:
    """Result of a submission. ``id`` is the id of the run or task, ``job_id`` that of the scheduler, None if unknown.

    If the scheduler rejected the job, ``refused`` is the reason and ``remedy`` a correction, and no job exists.
    """

    id: str
    directory: str
    job_id: str | None = None
    refused: str = ""
    remedy: str = ""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class JobStatus:
    """Status of one job. If the scheduler does not respond, `SchedulerHooks.poll` raises TargetError instead.

    An ``absent`` job does not exist. An ``unknown`` job has left the queue, but accounting does not contain its end
    yet. A pending job with a cause will never start, so core cancels it. ``attempt`` counts restarts by the scheduler,
    each of which writes its own logs. ``remedy`` replaces core's remedy for the cause. For a pending job without a
    cause, ``remedy`` is what the user can do to let the job start, such as releasing it. ``time_left_s`` is the time
    until the scheduler ends a running job for its time limit, None if that is unknown. ``suspended`` is True if the
    scheduler has paused a running job.
    """

    state: JobState
    job_id: str | None = None
    cause: Cause = ""
    exit_code: int | None = None
    reason: str = ""
    remedy: str = ""
    attempt: NonNegativeInt = 0
    time_left_s: float | None = None
    suspended: bool = False

    @property
    def unsatisfiable(self) -> bool:
        """True if the job is pending but will never start."""
        return self.state == "pending" and bool(self.cause)
