"""Jobs as detached processes of a host: they outlive ``llmb``, and their end is kept on disk.

Each lives in its script's directory, in a session of its own. Submitting takes a lock there, so that asking twice
starts one; a job's process id is believed only together with its start time and boot. A file ``.secrets`` in that
directory is read by the job and never outlives it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from llmb.hookspecs import Host
from llmb.scripts.resources import resource_text
from llmb.values.errors import TargetError, UnknownOutcomeError
from llmb.values.job import Script
from llmb.values.job_status import Cause, JobHandle, JobState, JobStatus

SOME_STARTED = 75  # the exit status where one could not be started, and one before it was


def submit_detached(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Start each script that was not started before.

    Raises TargetError where the host can start none, and UnknownOutcomeError where it started some of them.

    A script may read ``detached.sh`` in its directory, to ask after jobs beside it: ``supervisor DIRECTORY`` is true
    while a job is looked after, ``settle DIRECTORY`` ends what is left of one that is not, and notes its end. The file
    ``arriving`` is locked until a script closes its descriptor 7, so that jobs may arrive one after the other.
    """
    if not scripts:
        return {}
    common = {
        "supervise.sh": _bash("processes.sh", "supervise.sh"),
        "detached.sh": _bash("processes.sh", "detached.sh"),
    }
    files: dict[str, str] = {}
    for script in scripts:
        texts = common | {"job.sh": script.text}
        files |= {f"{script.directory}/{name}": text for name, text in texts.items()}
        files |= script.files
    host.put(files)
    statuses = (1, *[SOME_STARTED] * len(scripts))
    _run(
        host,
        "\n".join(f"{_submission(script)} || exit {status}" for script, status in zip(scripts, statuses, strict=False)),
    )
    return {script.id: JobHandle(id=script.id, directory=script.directory) for script in scripts}


def poll_detached(tickets: Iterable[JobHandle], host: Host) -> Mapping[str, JobStatus]:
    """How each stands, by one command. Raises TargetError where one cannot ask."""
    calls = [shlex.join(["poll", ticket.id, ticket.directory]) for ticket in tickets]
    if not calls:
        return {}
    lines = _run(host, "\n".join(calls)).removesuffix("\n").split("\n")  # a job's words may hold other line ends
    return dict(_status(line) for line in lines)


def cancel_detached(tickets: Iterable[JobHandle], host: Host) -> None:
    """End these jobs: TERM to each, KILL to all its processes that live when it has ended, or when its grace is over.

    One that is cancelled a second time is given no more grace.
    """
    _run(host, "\n".join(shlex.join(["cancel", ticket.directory]) for ticket in tickets))


def _submission(script: Script) -> str:
    seconds = [str(script.time_limit_s or 0), str(script.grace_s)]
    return shlex.join(["submit", script.directory, *seconds, "again" if script.check else ""])


def _bash(*names: str) -> str:
    return "\n".join(resource_text("llmb.hosts", name) for name in names)


def _run(host: Host, calls: str) -> str:
    answer = host.run(f"{_bash('processes.sh', 'detached.sh')}\n{calls}")
    if answer.exit_code:
        error = UnknownOutcomeError if answer.exit_code == SOME_STARTED else TargetError
        raise error(f"a job could not be started or asked for: {answer.stderr.strip() or answer.exit_code}")
    return answer.stdout


def _status(line: str) -> tuple[str, JobStatus]:
    identity, state, pid, exit_code, cause, reason = line.split("\t")
    return identity, JobStatus(
        state=cast("JobState", state),
        job_id=pid or None,
        exit_code=int(exit_code) if exit_code else None,
        cause=cast("Cause", cause),
        reason=reason,
    )
