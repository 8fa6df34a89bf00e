"""Jobs that have left the queue without a known end, which are lost after some time."""

from llmb import JobStatus
from llmb_slurm.parse_squeue_sacct import Accounting

LOST_AFTER_S = 60
"""A job without a known end is lost after so long without a queue entry. Accounting may lag behind the queue."""

LOST_WITHOUT_ACCOUNTING_AFTER_S = 120
"""The same if accounting does not respond."""


def missing_job_status(job_id: str, missing_s: int, attempt: int, accounting: Accounting) -> JobStatus:
    """Return the status of a job that has been missing from the queue for ``missing_s`` and has no known end."""
    if missing_s < (LOST_AFTER_S if accounting.available else LOST_WITHOUT_ACCOUNTING_AFTER_S):
        return JobStatus(state="unknown", job_id=job_id, reason=_describe_wait(accounting), attempt=attempt)
    reason = _describe_missing_end(accounting)
    return JobStatus(state="ended", job_id=job_id, cause="lost", reason=reason, attempt=attempt)


def _describe_wait(accounting: Accounting) -> str:
    if not accounting.enabled:
        return "waiting for the end of the job, which Slurm's queue no longer lists"
    return "waiting for Slurm's accounting" + ("" if accounting.available else ", which does not respond")


def _describe_missing_end(accounting: Accounting) -> str:
    if accounting.enabled and accounting.available:
        return "neither Slurm's queue nor its accounting contains the end of the job"
    problem = "does not respond" if accounting.enabled else "is disabled"
    return f"Slurm's queue no longer lists the job, and its accounting {problem}"
