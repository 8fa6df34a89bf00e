"""Jobs submitted once each, and cancelled."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from llmb import Host, JobHandle, Script, TargetError, UnknownOutcomeError, resource_text
from llmb_slurm.directives import job_mark
from llmb_slurm.poll import find_jobs
from llmb_slurm.refusals import remedy

AT_ONCE = 200  # jobs in one command, so that it ends in time also where the controller is slow
TIMEOUT_S = 600.0
PERHAPS_SUBMITTED = 75  # what submit.sh exits with where sbatch was not answered


def submit_jobs(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Submit those that were not submitted before.

    Raises TargetError where none was, and UnknownOutcomeError where some were, or may have been.
    """
    tickets: dict[str, JobHandle] = {}
    try:
        for begin in range(0, len(scripts), AT_ONCE):
            some = scripts[begin : begin + AT_ONCE]
            host.put({path: text for script in some for path, text in _files(script)})
            tickets |= _submit(some, host)
    except TargetError as error:
        if any(ticket.job_id for ticket in tickets.values()):
            raise UnknownOutcomeError(*error.faults) from error
        raise
    return tickets


def _files(script: Script) -> Iterator[tuple[str, str]]:
    yield f"{script.directory}/job.sh", script.text
    yield from script.files.items()


def _submit(scripts: Sequence[Script], host: Host) -> dict[str, JobHandle]:
    calls = []
    for (folder, *defaults), together in groupby(sorted(scripts, key=_group), _group):
        calls += [shlex.join(["lock", folder]), shlex.join(["defaults", *defaults])]
        calls += [
            shlex.join(["start", each.id, job_mark(each.id, each.directory), each.directory, each.check])
            for each in together
        ]
    functions = "\n".join(resource_text("llmb_slurm", name) for name in ("environment.sh", "submit.sh"))
    answer = host.run("\n".join([functions, *calls, "finish"]), timeout_s=TIMEOUT_S)
    directories = {script.id: script.directory for script in scripts}
    tickets = [_ticket(line, directories) for line in filter(None, answer.stdout.split("\n"))]
    if answer.exit_code:
        told = answer.stderr.strip().splitlines() or [f"exit status {answer.exit_code}"]
        perhaps = answer.exit_code == PERHAPS_SUBMITTED or any(ticket.job_id for ticket in tickets)
        error = UnknownOutcomeError if perhaps else TargetError
        raise error(f"jobs could not be submitted: {told[-1]}")
    return {ticket.id: ticket for ticket in tickets}


def _group(script: Script) -> tuple[str, str, str]:
    """What is set once for several: the folder to lock, and whether account and partition are the environment's."""
    account, partition = ("" if f"\n#SBATCH --{name}=" in script.text else name for name in ("account", "partition"))
    return str(PurePosixPath(script.directory).parent), account, partition


def _ticket(line: str, directories: Mapping[str, str]) -> JobHandle:
    identity, job_id, told = line.split("\t", 2)
    if job_id:
        return JobHandle(id=identity, directory=directories[identity], job_id=job_id)
    refused = f"sbatch refused it: {told.replace('sbatch: error: ', ' ').strip()}"
    return JobHandle(id=identity, directory=directories[identity], refused=refused, remedy=remedy(told))


def cancel_jobs(tickets: Sequence[JobHandle], host: Host) -> None:
    """End these jobs and no others; what has ended already is left alone."""
    job_ids = find_jobs(tickets, host)
    if not job_ids:
        return
    answer = host.run(
        f"{resource_text('llmb_slurm', 'cancel.sh')}\n{shlex.join(['cancel', *job_ids])}", timeout_s=TIMEOUT_S
    )
    if answer.exit_code:
        raise TargetError(f"jobs could not be cancelled: {answer.stderr.strip()}")
