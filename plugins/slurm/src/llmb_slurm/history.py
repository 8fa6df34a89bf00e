"""The attempts of jobs that are over, and who cancelled them, from sacct."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

import attrs

from llmb import Attempt, Host, JobHandle, JobHistory
from llmb_slurm.job_states import CAUSES
from llmb_slurm.poll import run_functions

WITHOUT_ACCOUNTING = "Slurm's accounting {}, so the causes of requeues and the user of a cancellation are unknown"

NOT_YET_NAMED = "allocation"
"""The name of a job in accounting before the name that the user gave it arrives there."""


@attrs.frozen(kw_only=True)
class Start:
    """One start of a job as sacct reports it. ``user`` cancelled the job. ``pending`` is True if it has no end yet."""

    job_id: str
    name: str
    state: str
    start: float | None
    end: float | None
    user: str
    nodes: tuple[str, ...]
    pending: bool = False


def query_history(tickets: Sequence[JobHandle], host: Host) -> Mapping[str, JobHistory]:
    """Return the history of each job. Raise TargetError if the host does not respond.

    One command queries sacct for all jobs.
    """
    ids = {each.id: each.job_id for each in tickets if each.job_id}
    if not ids:
        return {}
    output = run_functions(host, f"query_history {shlex.quote(','.join(ids.values()))}", "sacct")
    header, *lines = output.splitlines()
    if header != "rows":
        note = WITHOUT_ACCOUNTING.format("is disabled" if header == "disabled" else "does not respond")
        return {name: JobHistory(note=note) for name in ids}
    starts = [start for line in lines if (start := parse_start(line))]
    return {
        name: _history(each for each in starts if each.job_id == ids[name] and each.name in (name, NOT_YET_NAMED))
        for name in ids
    }


def parse_start(line: str) -> Start | None:
    """Parse a line that `query_history` of poll.sh prints. Return None for any other line."""
    fields = line.split("\t")
    if len(fields) != 7:
        return None
    job_id, name, state, start, end, user, nodes = fields
    return Start(
        job_id=job_id,
        name=name,
        state=state,
        start=float(start) if start.isdecimal() else None,
        end=float(end) if end.isdecimal() else None,
        user=user,
        nodes=tuple(nodes.split()),
        pending="Unknown" in (start, end),
    )


def _history(starts: Iterable[Start]) -> JobHistory:
    """Return the history of one job. Slurm has used its id for earlier jobs too, if the ids began again.

    Accounting lags behind the queue: a job without a row, or whose row has no end, is pending.
    """
    rows = list(starts)
    began = [row for row in rows if row.start is not None]  # a job that was cancelled in the queue never did
    attempts = [
        Attempt(attempt=number, start=row.start, end=row.end, nodes=row.nodes, cause=_cause(row.state))
        for number, row in enumerate(began)
    ]
    pending = not rows or any(row.pending for row in rows)
    return JobHistory(attempts=tuple(attempts), cancelled_by=rows[-1].user if rows else "", pending=pending)


def _cause(state: str) -> str:
    return "requeued" if state == "REQUEUED" else CAUSES.get(state, "")
