"""Translation of Slurm's job states and reasons into a `JobStatus`."""

from typing import Literal

from llmb import Cause, JobStatus
from llmb_slurm.parse_squeue_sacct import JobRow
from llmb_slurm.rejected_and_stuck_jobs import (
    FORBIDDEN_QOS,
    UNSATISFIABLE,
    UNSATISFIABLE_IN_PARTITION,
    find_remedy,
    held_job_remedy,
)

WAITING = {
    "PENDING",
    "CONFIGURING",
    "EXPEDITING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "SPECIAL_EXIT",
    "RESV_DEL_HOLD",
}
SUSPENDED = {"SUSPENDED", "STOPPED"}
CAUSES: dict[str, Cause] = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node failure",
    "BOOT_FAIL": "launch failure",
    "OUT_OF_MEMORY": "out of memory",
    "DEADLINE": "deadline",
    "REVOKED": "cancelled",
}
ENDED_STATES = "|".join(CAUSES)
"""The states of jobs that have ended, as a regular expression for bash and awk."""

OUT_OF_MEMORY_SIGNAL = 125  # Slurm's mark for a step with processes that were killed for memory
LAUNCH_FAILED_SIGNAL = 53  # Slurm's mark for a job whose output file could not be opened

NOT_LAUNCHED = (
    "name a folder that all nodes share and that you can write (`llmb run SPEC --set target.workdir=/path/to/folder`); "
    "if all nodes share the folder, contact the site"
)
NOT_BOOTED = (
    "a node did not boot; run again, and if it fails again, exclude that node: "
    "`llmb run SPEC --set target.exclude=NODE`"
)


def job_stage(row: JobRow) -> Literal["pending", "running", "ended"]:
    """Return the stage of a job. All other states count as running, also those that this version does not know."""
    if row.state in WAITING:
        return "pending"
    return "ended" if row.state in CAUSES else "running"


def job_status(row: JobRow) -> JobStatus:
    """Return a row of squeue or sacct as a status. Core derives the state of the run from it."""
    attempt = row.attempt or 0
    stage = job_stage(row)
    if stage == "running":
        return JobStatus(
            state="running",
            job_id=row.job_id,
            attempt=attempt,
            time_left_s=row.time_left_s if row.state == "RUNNING" else None,
            suspended=row.state in SUSPENDED,
        )
    if stage == "pending":
        return _pending(row, attempt)
    cause, reason = _end(row)
    code, signal = row.exit_code
    return JobStatus(
        state="ended",
        job_id=row.job_id,
        cause=cause,
        exit_code=code or (128 + signal if signal else 0),
        reason=reason,
        remedy=_remedy(row, cause),
        attempt=attempt,
    )


def _pending(row: JobRow, attempt: int) -> JobStatus:
    cause: Cause = ""
    if _is_unsatisfiable(row):
        cause = "impossible"
    elif row.reason == "DependencyNeverSatisfied":
        cause = "dependency"
    elif "launch" in row.reason.lower():  # "launch failed requeued held": only an operator can release the job
        cause = "launch failure"
    reason = row.reason if row.state == "PENDING" else row.state.capitalize()
    if reason == "BeginTime" and attempt:
        reason = "requeued (BeginTime)"
    return JobStatus(
        state="pending",
        job_id=row.job_id,
        cause=cause,
        reason=reason,
        remedy=_remedy(row, cause) or _remedy_of_waiting(row),
        attempt=attempt,
    )


def _is_unsatisfiable(row: JobRow) -> bool:
    """Check whether a job could never start. A job in several partitions may start in another one of them."""
    one_partition = "," not in row.partition
    return bool(UNSATISFIABLE.match(row.reason) or (one_partition and UNSATISFIABLE_IN_PARTITION.match(row.reason)))


def _remedy_of_waiting(row: JobRow) -> str:
    if FORBIDDEN_QOS.match(row.reason):
        return find_remedy(row.reason)
    return held_job_remedy(row.job_id, row.state, row.reason)


def _remedy(row: JobRow, cause: Cause) -> str:
    if cause == "launch failure":
        return NOT_BOOTED if row.state == "BOOT_FAIL" else NOT_LAUNCHED
    return find_remedy(row.reason) if cause == "impossible" else ""


def _end(row: JobRow) -> tuple[Cause, str]:
    cause = CAUSES[row.state]
    if cause == "cancelled" and row.reason.startswith("Dependency"):
        return "dependency", "a job that it depends on did not end as required"
    if cause == "cancelled" and (_is_unsatisfiable(row) or FORBIDDEN_QOS.match(row.reason)):
        return "impossible", row.reason
    if cause == "failed" and OUT_OF_MEMORY_SIGNAL in (row.exit_code[1], row.step_exit_code[1]):
        return "out of memory", "Slurm killed processes of a step that used too much memory"
    if cause == "failed" and row.exit_code[1] == LAUNCH_FAILED_SIGNAL:
        return "launch failure", "Slurm could not start the job's script or open its log"
    if cause == "failed" and row.reason == "BadConstraints":
        return "impossible", row.reason
    return cause, ""
