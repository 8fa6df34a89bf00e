"""The attempts of jobs that are over, who cancelled them, and which jobs followed preemptions, from sacct."""

import shlex
from collections.abc import Iterable, Mapping, Sequence

import attrs

from llmb import Attempt, Host, JobHandle, JobHistory, fold_hosts
from llmb_slurm.job_states import CAUSES
from llmb_slurm.parse_squeue_sacct import is_accounted_to, parse_duration_s
from llmb_slurm.poll import run_functions

WITHOUT_ACCOUNTING = "Slurm's accounting {}, so the causes of requeues and the user of a cancellation are unknown"

FOLLOWS_WITHIN_S = 60
"""A job that preempted another one starts so soon after: Slurm first waits for the end of the other job's processes."""

STARTS_LIMIT_S = 30
"""Seconds for all queries of the jobs that followed preemptions. A result is complete without them."""


@attrs.frozen(kw_only=True)
class JobAttempt:
    """One attempt of a job as sacct reports it. ``user`` cancelled the job. ``pending`` is True if it has no end yet.

    ``suspended_s`` is the time for which Slurm suspended it, and ``folder`` the directory where the job was submitted.
    """

    job_id: str
    name: str
    state: str
    start: float | None
    end: float | None
    user: str
    nodes: tuple[str, ...]
    partition: str
    qos: str
    suspended_s: float | None
    folder: str
    pending: bool


@attrs.frozen(kw_only=True)
class OtherJobAttempt:
    """One attempt of another job, of any user."""

    job_id: str
    user: str
    partition: str
    qos: str
    start: float
    nodes: tuple[str, ...]


def query_history(handles: Sequence[JobHandle], host: Host) -> Mapping[str, JobHistory]:
    """Return the history of each job. Raise TargetError if the host does not respond.

    One command queries sacct for all jobs. A second one follows if a job was preempted.
    """
    known = {each.id: each for each in handles if each.job_id}
    ids = ",".join(each.job_id for each in handles if each.job_id)
    if not ids:
        return {}
    output = run_functions(host, f"query_history {shlex.quote(ids)}", "sacct")
    header, *lines = output.splitlines()
    if header != "rows":
        note = WITHOUT_ACCOUNTING.format("is disabled" if header == "disabled" else "does not respond")
        return {name: JobHistory(note=note) for name in known}
    attempts = [attempt for line in lines if (attempt := parse_attempt(line))]
    found = {name: [each for each in attempts if _is_of(each, handle)] for name, handle in known.items()}
    others = _query_attempts_after_preemptions(list(found.values()), host)
    return {name: _history(rows, others) for name, rows in found.items()}


def parse_attempt(line: str) -> JobAttempt | None:
    """Parse a line that `query_history` of poll.sh prints. Return None for any other line."""
    fields = line.split("\t", 10)
    if len(fields) != 11:
        return None
    job_id, name, state, start, end, user, nodes, partition, qos, suspended, folder = fields
    return JobAttempt(
        job_id=job_id,
        name=name,
        state=state,
        start=float(start) if start.isdecimal() else None,
        end=float(end) if end.isdecimal() else None,
        user=user,
        nodes=tuple(nodes.split()),
        partition=partition,
        qos=qos,
        suspended_s=parse_duration_s(suspended),
        folder=folder,
        pending="Unknown" in (start, end),
    )


def _is_of(attempt: JobAttempt, handle: JobHandle) -> bool:
    """Check whether an attempt is of the job of ``handle``. Earlier jobs have the same id if the ids began again."""
    return attempt.job_id == handle.job_id and is_accounted_to(handle, attempt.name, attempt.folder)


def _query_attempts_after_preemptions(jobs: Iterable[Sequence[JobAttempt]], host: Host) -> Sequence[OtherJobAttempt]:
    """Return the attempts of other jobs on the nodes of preempted jobs. Query nothing if none was preempted.

    A job whose history is not complete yet is left out, because its history will be queried again.
    """
    calls = []
    for rows in jobs:
        preempted = [each for each in rows if each.state == "PREEMPTED" and each.nodes]
        if preempted and not _is_pending(rows):
            nodes = ",".join(dict.fromkeys(node for each in preempted for node in each.nodes))
            ends = sorted(f"{each.end:.0f}" for each in preempted if each.end is not None)
            calls.append(shlex.join(["query_starts", nodes, str(FOLLOWS_WITHIN_S), *ends]))
    script = "\n".join([f"limit_s={STARTS_LIMIT_S}", *calls])
    lines = run_functions(host, script, "sacct").splitlines() if calls else []
    return [attempt for line in lines if (attempt := _parse_other_attempt(line))]


def _parse_other_attempt(line: str) -> OtherJobAttempt | None:
    """Parse a line that `query_starts` of poll.sh prints. Return None for a job whose row is not complete yet."""
    job_id, user, partition, qos, start, nodes = line.split("\t")
    if not (job_id.isdecimal() and user and partition):
        return None
    return OtherJobAttempt(
        job_id=job_id, user=user, partition=partition, qos=qos, start=float(start), nodes=tuple(nodes.split())
    )


def _history(rows: Sequence[JobAttempt], others: Sequence[OtherJobAttempt]) -> JobHistory:
    """Return the history of one job."""
    began = [row for row in rows if row.start is not None]  # a job that was cancelled in the queue never did
    attempts = [
        Attempt(
            attempt=number,
            start=row.start,
            end=row.end,
            nodes=row.nodes,
            cause="requeued" if row.state == "REQUEUED" else CAUSES.get(row.state, ""),
            followed_by=_describe_next_job(row, others) if row.state == "PREEMPTED" else "",
            suspended_s=row.suspended_s,
        )
        for number, row in enumerate(began)
    ]
    by = rows[-1].user if rows else ""
    return JobHistory(attempts=tuple(attempts), cancelled_by=by, pending=_is_pending(rows))


def _is_pending(rows: Sequence[JobAttempt]) -> bool:
    """Check whether accounting, which lags behind the queue, has no row of a job, or a row without an end."""
    return not rows or any(row.pending for row in rows)


def _describe_next_job(preempted: JobAttempt, others: Iterable[OtherJobAttempt]) -> str:
    """Return the first job of another partition or QOS that started on nodes of a preempted one, or "".

    Only the log of slurmctld contains which job preempted another one.
    """
    end, own, nodes = preempted.end or 0.0, (preempted.partition, preempted.qos), set(preempted.nodes)
    found = [
        each
        for each in others
        if each.job_id != preempted.job_id
        and (each.partition, each.qos) != own
        and end <= each.start <= end + FOLLOWS_WITHIN_S
        and not nodes.isdisjoint(each.nodes)
    ]
    if not found:
        return ""
    first = min(found, key=lambda each: (each.start, int(each.job_id)))
    shared = fold_hosts(node for node in first.nodes if node in nodes)
    return f"job {first.job_id} of {first.user} ({first.partition}) on {shared}"
