"""How many jobs stand: one question to the queue; for those that ended, their directories and the accounts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

import attrs

from llmb import Cause, Host, JobHandle, JobStatus, TargetError, resource_text
from llmb_slurm.directives import job_mark
from llmb_slurm.status import Row, from_sacct, from_squeue, job_status

FORGOTTEN_AFTER_S = 60
"""How long a job must be missing from the queue, its end untold, before it counts as lost: accounts lag behind."""

TIMEOUT_S = 120.0


@attrs.frozen(kw_only=True)
class Left:
    """What a job left behind in its directory: who worked there, in which attempt, and its own word of the end."""

    claim: str
    missing_s: int
    attempt: int
    ended: tuple[str, int, str] | None

    @property
    def own_word(self) -> str:
        """Why it ended, where it knew."""
        return self.ended[2] if self.ended else ""


@attrs.frozen
class Accounts:
    """The answer of sacct: its rows, or that it cannot tell now."""

    rows: Mapping[str, Row]
    can_tell: bool


def poll_jobs(tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobStatus]:
    """How each stands. Raises TargetError where one cannot ask."""
    ids, queue = _ask_queue(tickets, host)
    running = {ticket.id: job_status(row) for ticket in tickets if (row := _row(ticket, ids, queue))}
    over = [each for each in tickets if each.id not in running or _may_be_over(running[each.id])]
    over = [each for each in over if each.id in running or each.id in ids]
    left = _ask_directories(over, running, host)
    gone = {ids[each.id] for each in over if each.id not in running}
    gone |= {left[each.id].claim for each in over if left[each.id].claim not in ("", ids.get(each.id), *queue)}
    accounts = _ask_accounts(gone, host)
    told = {each.id: _told(ids[each.id], left[each.id], queue, accounts) for each in over if each.id in ids}
    absent = {each.id: JobStatus(state="absent") for each in tickets}
    return {**absent, **running, **told}


def find_jobs(tickets: Sequence[JobHandle], host: Host) -> list[str]:
    """The ids of those jobs that there are."""
    return list(_ask_queue(tickets, host)[0].values())


def _ask_queue(tickets: Sequence[JobHandle], host: Host) -> tuple[dict[str, str], dict[str, Row]]:
    """Each ticket's job id, where there is one, and the rows of the queue by job id."""
    nameless = [shlex.join(["known", each.id, each.directory]) for each in tickets if not each.job_id]
    named = [each.job_id for each in tickets if each.job_id]
    wanted = "" if nameless else ",".join(named)  # without a name a job is found by its mark, among all
    lines = ask(host, "\n".join([*nameless, f"queue {shlex.quote(wanted)} || exit 1"]), "squeue").splitlines()
    divide = lines.index("queue")
    queue = {row.job_id: row for line in lines[divide + 1 :] if (row := from_squeue(line))}
    known = {ticket.id: ticket.job_id for ticket in tickets if ticket.job_id}
    known |= {identity: job_id for identity, _, job_id in (each.partition("\t") for each in lines[:divide]) if job_id}
    marks = {row.comment: row.job_id for row in queue.values()}
    known |= {
        each.id: marks[mark]
        for each in tickets
        if each.id not in known and (mark := job_mark(each.id, each.directory)) in marks
    }
    return known, queue


def _may_be_over(status: JobStatus) -> bool:
    """It has ended; or it is held since its launch failed, although it may have been launched all the same."""
    return status.state == "ended" or (status.state == "pending" and status.cause == "launch failure")


def _row(ticket: JobHandle, ids: Mapping[str, str], queue: Mapping[str, Row]) -> Row | None:
    return queue.get(ids.get(ticket.id, ""))


def _ask_directories(over: Iterable[JobHandle], ended: Mapping[str, JobStatus], host: Host) -> dict[str, Left]:
    calls = [shlex.join(["left", each.id, each.directory, "" if each.id in ended else "missing"]) for each in over]
    if not calls:
        return {}
    answer = ask(host, "\n".join(calls), "the run's directory")
    return dict(map(_left, answer.removesuffix("\n").split("\n")))  # a job's words may hold other line ends


def _left(line: str) -> tuple[str, Left]:
    identity, claim, missing_s, attempt, ended = line.split("\t", 4)
    job_id, _, rest = ended.partition("\t")
    status, _, why = rest.partition("\t")
    return identity, Left(
        claim=claim,
        missing_s=int(missing_s),
        attempt=int(attempt or 0),
        ended=(job_id, int(status), why) if status.isdigit() else None,
    )


def _ask_accounts(job_ids: Iterable[str], host: Host) -> Accounts:
    wanted = ",".join(sorted(job_ids))
    if not wanted:
        return Accounts({}, can_tell=True)
    header, *lines = ask(host, f"accounts {shlex.quote(wanted)}", "sacct").splitlines()
    if header == "accounts cannot be asked":
        return Accounts({}, can_tell=False)
    return Accounts({row.job_id: row for line in lines if (row := from_sacct(line))}, can_tell=True)


def _told(job_id: str, left: Left, queue: Mapping[str, Row], accounts: Accounts) -> JobStatus:
    """How a job stands that has ended, or that the queue does not know any more."""
    if left.claim and left.claim != job_id:  # a twin was sent by mistake, and did nothing
        job_id = left.claim
    row = queue.get(job_id) or accounts.rows.get(job_id)
    if row is not None and (row.stage == "ended" or job_id in queue):
        return _with_own_word(job_status(row), left)
    if left.ended and left.ended[0] == job_id:
        status, why = left.ended[1:]
        cause: Cause = "failed" if status else "completed"
        return JobStatus(state="ended", job_id=job_id, cause=cause, exit_code=status, reason=why, attempt=left.attempt)
    if not accounts.can_tell or left.missing_s < FORGOTTEN_AFTER_S:
        reason = "waiting for Slurm's accounts" + ("" if accounts.can_tell else ", which cannot be asked")
        return JobStatus(state="unknown", job_id=job_id, reason=reason, attempt=left.attempt)
    reason = "neither Slurm's queue nor its accounts know how it ended"
    return JobStatus(state="ended", job_id=job_id, cause="lost", reason=reason, attempt=left.attempt)


def _with_own_word(status: JobStatus, left: Left) -> JobStatus:
    """The same, with why the job itself says it failed, where Slurm says no more than that.

    A job that Slurm holds for a failed launch, and that came to its end nevertheless, has done its work: it is to be
    cancelled, and counts as completed.
    """
    if status.cause == "launch failure" and left.ended and left.ended[:2] == (status.job_id, 0):
        return attrs.evolve(status, cause="completed", exit_code=0, reason="", remedy="", attempt=left.attempt)
    if status.state != "ended":
        return status
    attempt = max(status.attempt, left.attempt)
    own_word = left.own_word if status.cause == "failed" else ""
    return attrs.evolve(status, attempt=attempt, reason=status.reason or own_word)


def ask(host: Host, calls: str, what: str) -> str:
    """What bash prints with the functions of poll.sh. Raises TargetError where it fails."""
    functions = resource_text("llmb_slurm", "poll.sh")
    answer = host.run(f"{functions}\n{calls}", timeout_s=TIMEOUT_S)
    if answer.exit_code:
        told = answer.stderr.strip().splitlines() or [f"exit status {answer.exit_code}"]
        raise TargetError(f"Slurm cannot be asked ({what}): {told[-1]}")
    return answer.stdout
