"""The output of squeue and sacct, parsed into rows."""

import re
from pathlib import PurePosixPath

import attrs

from llmb import JobHandle

NOT_YET_NAMED = "allocation"
"""The name of a job in accounting before the name that the user gave it arrives there."""

DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
"""A duration as squeue and scontrol print it: days-hours:minutes:seconds, without leading parts."""


@attrs.frozen(kw_only=True)
class JobRow:
    """One job as squeue or sacct reports it. Exit codes are pairs of exit code and signal.

    ``attempt`` is the number of restarts, and ``time_left_s`` the time until the time limit. They are None in a row of
    sacct, which does not report them. ``partition`` may contain several names with commas until the job starts.
    ``folder`` is the directory where the job was submitted.
    """

    job_id: str
    state: str
    exit_code: tuple[int, int]
    step_exit_code: tuple[int, int]
    reason: str
    name: str
    partition: str
    attempt: int | None = None
    comment: str = ""
    time_left_s: int | None = None
    folder: str = ""


@attrs.frozen
class Accounting:
    """The answer of sacct: rows by job id, in ascending order. There are several if the job started several times.

    ``available`` is False if sacct did not respond, and ``enabled`` is False if the cluster has no accounting.
    """

    rows: dict[str, list[JobRow]]
    available: bool
    enabled: bool = True


def is_directory_of(handle: JobHandle, folder: str) -> bool:
    """Check whether a job was submitted in the directory of ``handle``. Another path may lead to the same directory."""
    return PurePosixPath(folder).name == PurePosixPath(handle.directory).name


def is_accounted_to(handle: JobHandle, name: str, folder: str) -> bool:
    """Check whether a row of sacct is of the job of ``handle``, by name, or by directory if the job was renamed."""
    return name in (handle.id, NOT_YET_NAMED) or is_directory_of(handle, folder)


def parse_squeue_line(line: str) -> JobRow | None:
    """Parse a line that `query_queue` prints. Return None for a further line of a comment."""
    fields = line.removesuffix("|").split("|", 10)
    if len(fields) < 11 or not fields[2].isdigit():
        return None
    job_id, state, attempt, code, step_code, name, partition, reason, time_left, folder, comment = fields
    return JobRow(
        job_id=job_id,
        state=state,
        exit_code=parse_exit_code(code),
        step_exit_code=parse_exit_code(step_code),
        reason="" if reason == "None" else reason,
        name=name,
        partition=partition,
        attempt=int(attempt),
        comment=comment,
        time_left_s=parse_duration_s(time_left),
        folder=folder,
    )


def parse_sacct(output: str) -> Accounting:
    """Parse the output of `query_accounting` in poll.sh."""
    header, *lines = output.splitlines()
    rows: dict[str, list[JobRow]] = {}
    for line in lines:
        if row := parse_sacct_line(line):
            rows.setdefault(row.job_id, []).append(row)
    return Accounting(rows, available=header != "unavailable", enabled=header != "disabled")


def parse_sacct_line(line: str) -> JobRow | None:
    """Parse a line of sacct. Return None for any other line."""
    if line.count("|") < 7:
        return None
    job_id, state, code, step_code, reason, name, partition, folder = line.split("|", 7)
    return JobRow(
        job_id=job_id,
        state=state.partition(" ")[0],  # CANCELLED by 1001
        exit_code=parse_exit_code(code),
        step_exit_code=parse_exit_code(step_code),
        reason="" if reason == "None" else reason,
        name=name,
        partition=partition,
        folder=folder,
    )


def parse_exit_code(text: str) -> tuple[int, int]:
    """Return exit code and signal. sacct prints ``3:0``; squeue prints the same, or the raw status of wait(2)."""
    code, colon, signal = text.partition(":")
    if colon:
        return int(code or 0), int(signal or 0)
    raw = int(code) if code.isdigit() else 0
    return (raw >> 8) & 0xFF, raw & 0x7F


def parse_duration_s(text: str) -> int | None:
    """Return a duration of Slurm in seconds, such as 1-00:00:00, 2:00 or 30, or None for any other text."""
    if not (found := DURATION.fullmatch(text)):
        return None
    days, *parts = found.groups()
    numbers = [int(part) for part in parts if part]
    if not days and len(numbers) < 3:  # minutes:seconds, or minutes
        numbers = [0, *numbers]
    hours, minutes, seconds = (*numbers, 0, 0)[:3]
    return ((24 * int(days or 0) + hours) * 60 + minutes) * 60 + seconds
