"""Job status from squeue; for jobs that left the queue, from their directory and sacct."""

import shlex
from collections.abc import Iterable, Mapping, Sequence

import attrs

from llmb import Cause, Host, JobHandle, JobStatus, TargetError, assignments
from llmb_slurm.bash_files import queries
from llmb_slurm.job_states import ENDED_STATES, job_stage, job_status
from llmb_slurm.lost_jobs import missing_job_status
from llmb_slurm.parse_squeue_sacct import (
    Accounting,
    JobRow,
    is_accounted_to,
    is_directory_of,
    parse_sacct,
    parse_squeue_line,
)
from llmb_slurm.sbatch_directives import ANY_MARK, MARK, job_mark

TIMEOUT_S = 120.0


@attrs.frozen(kw_only=True)
class JobFiles:
    """The state that a job keeps in its directory.

    ``claim`` is the id of the job that runs there. ``missing_s`` is how long the job has been missing from the queue.
    ``ended`` is job id, exit code and reason, written when the script exits, else None.
    """

    claim: str
    missing_s: int
    attempt: int
    ended: tuple[str, int, str] | None


def poll_jobs(handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
    """Return the status of each job. Raise TargetError if Slurm or the host does not respond.

    One command queries squeue. A second one reads the directories of jobs that may have ended, and a third one queries
    sacct for jobs that have left the queue.
    """
    ids, queue = _query_queue(handles, host)
    statuses = {each.id: job_status(row) for each in handles if (row := _find_row(each, ids.get(each.id, ""), queue))}
    maybe_ended = [each for each in handles if each.id in ids and _may_have_ended(statuses.get(each.id))]
    files = _read_directories(maybe_ended, statuses, host)
    jobs = {each.id: files[each.id].claim or ids[each.id] for each in maybe_ended}  # without a claim, a job did nothing
    left_queue = {jobs[each.id] for each in maybe_ended if not _find_row(each, jobs[each.id], queue)}
    accounting = _query_accounting(left_queue, host)
    ended = {each.id: _resolve_status(each, jobs[each.id], files[each.id], queue, accounting) for each in maybe_ended}
    absent = {each.id: JobStatus(state="absent") for each in handles}
    return {**absent, **statuses, **ended}


def find_jobs(handles: Sequence[JobHandle], host: Host) -> list[str]:
    """Return the Slurm ids of the given jobs that are in the queue. Raise TargetError like `poll_jobs`."""
    ids, queue = _query_queue(handles, host)
    return [row.job_id for each in handles if (row := _find_row(each, ids.get(each.id, ""), queue))]


def _query_queue(handles: Sequence[JobHandle], host: Host) -> tuple[dict[str, str], dict[str, JobRow]]:
    """Return the Slurm id of each job that has one, by llmb's id, and the rows of the queue by Slurm id."""
    known = {each.id: each.job_id for each in handles if each.job_id}
    searches = [shlex.join(["find_job_id", each.id, each.directory]) for each in handles if not each.job_id]
    wanted = "" if searches else ",".join(known.values())  # a job without an id is found by its mark, so query all jobs
    calls = "\n".join([*searches, f"query_queue {shlex.quote(wanted)} || exit 1"])
    lines = run_functions(host, calls, "squeue").splitlines()
    divide = lines.index("queue")
    queue = {row.job_id: row for line in lines[divide + 1 :] if (row := parse_squeue_line(line))}
    for line in lines[:divide]:
        identity, _, job_id = line.partition("\t")
        if job_id:
            known[identity] = job_id
    marked = _ids_by_mark(queue.values()) if len(known) < len(handles) else {}
    for each in handles:
        if each.id not in known and (job_id := marked.get(job_mark(each.id, each.directory), "")):
            known[each.id] = job_id
    return known, queue


def _ids_by_mark(rows: Iterable[JobRow]) -> dict[str, str]:
    """Return the Slurm ids of jobs by their marks. If a task was submitted again, its last job counts."""
    by_age = sorted((row for row in rows if row.job_id.isdecimal()), key=lambda row: int(row.job_id))
    # a site may add text to the comment
    return {found[0]: row.job_id for row in by_age if (found := ANY_MARK.search(row.comment))}


def _find_row(handle: JobHandle, job_id: str, queue: Mapping[str, JobRow]) -> JobRow | None:
    """Return the row of the job of ``handle``, or None if the queue lacks the job or the id belongs to another job.

    A controller that lost its state gives the ids of earlier jobs to new ones. A site may change the name of a job and
    its comment, so each of them identifies the job, and so does its directory. The key of the directory does not count,
    because another process may have submitted the job with another path of the same directory.
    """
    row = queue.get(job_id)
    if row is None:
        return None
    is_named = row.name == handle.id or f"{MARK}{handle.id} " in row.comment
    return row if is_named or is_directory_of(handle, row.folder) else None


def _find_in_accounting(handle: JobHandle, job_id: str, accounting: Accounting) -> JobRow | None:
    """Return the last row of the job of ``handle``, or None. Accounting has no comment."""
    own = [row for row in accounting.rows.get(job_id, []) if is_accounted_to(handle, row.name, row.folder)]
    return own[-1] if own else None


def _may_have_ended(status: JobStatus | None) -> bool:
    """Check whether a job has left the queue, has ended, or is held for a failed launch although it may have run."""
    return status is None or status.state == "ended" or (status.state == "pending" and status.cause == "launch failure")


def _read_directories(jobs: Iterable[JobHandle], in_queue: Mapping[str, JobStatus], host: Host) -> dict[str, JobFiles]:
    calls = [
        shlex.join(["read_job_files", each.id, each.directory, "" if each.id in in_queue else "missing"])
        for each in jobs
    ]
    if not calls:
        return {}
    output = run_functions(host, "\n".join(calls), "the run's directory")
    return dict(map(_job_files, output.removesuffix("\n").split("\n")))  # a reason may contain other line separators


def _job_files(line: str) -> tuple[str, JobFiles]:
    identity, claim, missing_s, attempt, ended = line.split("\t", 4)
    job_id, _, rest = ended.partition("\t")
    code, _, reason = rest.partition("\t")
    return identity, JobFiles(
        claim=claim,
        missing_s=int(missing_s),
        attempt=int(attempt or 0),
        ended=(job_id, int(code), reason) if code.isdigit() else None,
    )


def _query_accounting(job_ids: Iterable[str], host: Host) -> Accounting:
    wanted = ",".join(sorted(job_ids))
    if not wanted:
        return Accounting({}, available=True)
    return parse_sacct(run_functions(host, f"query_accounting {shlex.quote(wanted)}", "sacct"))


def _resolve_status(
    handle: JobHandle, job_id: str, files: JobFiles, queue: Mapping[str, JobRow], accounting: Accounting
) -> JobStatus:
    """Return the status of a job that may have ended, from the queue, accounting and its directory, in this order."""
    row = _find_row(handle, job_id, queue)
    if row is None:
        row = _find_in_accounting(handle, job_id, accounting)
        row = row if row and job_stage(row) == "ended" else None
    if row is not None:
        return _with_files(job_status(row), files)
    if files.ended and files.ended[0] == job_id:
        code, reason = files.ended[1:]
        cause: Cause = "failed" if code else "completed"
        return JobStatus(
            state="ended", job_id=job_id, cause=cause, exit_code=code, reason=reason, attempt=files.attempt
        )
    return missing_job_status(job_id, files.missing_s, files.attempt, accounting)


def _with_files(status: JobStatus, files: JobFiles) -> JobStatus:
    """Add the reason that the job itself gave for its failure, if Slurm gives none.

    A job that Slurm holds for a failed launch, but whose script exited with 0, counts as completed. The job stays
    pending, so core cancels it.
    """
    if status.cause == "launch failure" and files.ended and files.ended[:2] == (status.job_id, 0):
        return attrs.evolve(status, cause="completed", exit_code=0, reason="", remedy="", attempt=files.attempt)
    if status.state != "ended":
        return status
    attempt = max(status.attempt, files.attempt)
    own_reason = files.ended[2] if files.ended and status.cause == "failed" else ""
    return attrs.evolve(status, attempt=attempt, reason=status.reason or own_reason)


def run_functions(host: Host, calls: str, what: str) -> str:
    """Run functions of poll.sh and return their output. Raise TargetError if one fails."""
    functions = [assignments(ended_states=ENDED_STATES), queries("job_id.sh", "poll.sh")]
    result = host.run("\n".join([*functions, calls]), timeout_s=TIMEOUT_S)
    if result.exit_code:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        raise TargetError(f"cannot query Slurm ({what}): {lines[-1]}")
    return result.stdout
