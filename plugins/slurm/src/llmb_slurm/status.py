"""What Slurm says of a job, in the words of llmb."""

from __future__ import annotations

import re
from typing import Literal

import attrs

from llmb import Cause, JobStatus

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
GOING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
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
OUT_OF_MEMORY_SIGNAL = 125  # what Slurm gives to a step of which processes were killed for memory
LAUNCH_FAILED_SIGNAL = 53  # what it gives to a job whose output file could not be opened

NEVER = re.compile(
    r"Partition(Node|Time)Limit|BadConstraints|AccountNotAllowed|QOSNotAllowed|Invalid(Account|QOS)"
    r"|ReservationDeleted|(Assoc|QOS)Max\w*PerJob\w*|QOSMin\w*",
    re.IGNORECASE,
)
"""Reasons for which a job pends for ever, as it was asked for."""

REMEDIES = {
    "partitionnodelimit": "run on fewer GPUs, or set target.partition to one with more nodes",
    "partitiontimelimit": "lower workload.time_limit, or set target.partition to one that allows it",
    "badconstraints": "see target.constraint, nodelist, exclude and mem: no node of the partition fits them",
    "accountnotallowed": "set target.account or target.partition",
    "invalidaccount": "set target.account",
    "qosnotallowed": "set target.qos or target.partition",
    "invalidqos": "set target.qos",
    "reservationdeleted": "set target.reservation",
}

NOT_LAUNCHED = "see that all nodes share target.workdir and may write there; else ask the site"
NOT_BOOTED = "a node did not start; run it again, and if it comes back, name that node in target.exclude"

State = Literal["pending", "running", "ended"]


@attrs.frozen(kw_only=True)
class Row:
    """One job as squeue or sacct tell of it; exit codes as exit status and signal. sacct does not know the attempt."""

    job_id: str
    state: str
    exit_code: tuple[int, int]
    step_exit_code: tuple[int, int]
    reason: str
    attempt: int | None = None
    comment: str = ""

    @property
    def stage(self) -> State:
        """Whether it waits, runs or has ended."""
        if self.state in WAITING:
            return "pending"
        return "running" if self.state in GOING or self.state not in CAUSES else "ended"


def from_squeue(line: str) -> Row | None:
    """A line of `queue` in poll.sh; null for what a job of somebody else's with an odd comment leaves of one."""
    fields = line.removesuffix("|").split("|", 6)
    if len(fields) < 7 or not fields[2].isdigit():
        return None
    job_id, state, attempt, code, step_code, comment, reason = fields
    return Row(
        job_id=job_id,
        state=state,
        exit_code=exit_code(code),
        step_exit_code=exit_code(step_code),
        reason="" if reason == "None" else reason,
        attempt=int(attempt),
        comment=comment,
    )


def from_sacct(line: str) -> Row | None:
    """A line of `accounts` in poll.sh; null for a line of anything else."""
    if line.count("|") < 4:
        return None
    job_id, state, code, step_code, reason = line.split("|", 4)
    return Row(
        job_id=job_id,
        state=state.partition(" ")[0],  # CANCELLED by 1001
        exit_code=exit_code(code),
        step_exit_code=exit_code(step_code),
        reason="" if reason == "None" else reason,
    )


def exit_code(text: str) -> tuple[int, int]:
    """Exit status and signal: sacct writes ``3:0``, squeue the raw status of wait(2) or the same."""
    status, colon, signal = text.partition(":")
    if colon:
        return int(status or 0), int(signal or 0)
    raw = int(status) if status.isdigit() else 0
    return (raw >> 8) & 0xFF, raw & 0x7F


def job_status(row: Row) -> JobStatus:
    """The row as a neutral status; what it means for the run is the core's to decide."""
    attempt = row.attempt or 0
    if row.stage == "running":
        return JobStatus(state="running", job_id=row.job_id, attempt=attempt)
    if row.stage == "pending":
        return _pending(row, attempt)
    cause, reason = _end(row)
    status, signal = row.exit_code
    return JobStatus(
        state="ended",
        job_id=row.job_id,
        cause=cause,
        exit_code=status or (128 + signal if signal else 0),
        reason=reason,
        remedy=_remedy(row, cause),
        attempt=attempt,
    )


def _pending(row: Row, attempt: int) -> JobStatus:
    cause: Cause = ""
    if NEVER.match(row.reason):
        cause = "impossible"
    elif row.reason == "DependencyNeverSatisfied":
        cause = "dependency"
    elif "launch" in row.reason.lower():  # launch failed requeued held: a human would have to release it
        cause = "launch failure"
    reason = row.reason if row.state == "PENDING" else row.state.capitalize()
    return JobStatus(
        state="pending",
        job_id=row.job_id,
        cause=cause,
        reason=reason,
        remedy=_remedy(row, cause),
        attempt=attempt,
    )


def _remedy(row: Row, cause: Cause) -> str:
    if cause == "launch failure":
        return NOT_BOOTED if row.state == "BOOT_FAIL" else NOT_LAUNCHED
    return REMEDIES.get(row.reason.lower(), "") if cause == "impossible" else ""


def _end(row: Row) -> tuple[Cause, str]:
    cause = CAUSES[row.state]
    if cause == "cancelled" and row.reason.startswith("Dependency"):
        return "dependency", "a job that it depends on did not end as asked"
    if cause == "cancelled" and NEVER.match(row.reason):
        return "impossible", row.reason
    if cause == "failed" and OUT_OF_MEMORY_SIGNAL in (row.exit_code[1], row.step_exit_code[1]):
        return "out of memory", "Slurm killed processes of a step for the memory they took"
    if cause == "failed" and row.exit_code[1] == LAUNCH_FAILED_SIGNAL:
        return "launch failure", "Slurm could not start its script, or not open its log"
    if cause == "failed" and row.reason == "BadConstraints":
        return "impossible", row.reason
    return cause, ""
