"""Jobs as detached processes of a host, for schedulers without a queue of their own.

A job outlives ``llmb`` and runs in its own session, in the directory of its script. A supervisor
(detached_job_supervisor.sh) keeps its exit code on disk. Submission takes a lock in that directory, so that submitting
twice starts one job. A process id is trusted only together with its start time and boot id. The job reads the file
``.secrets`` of its directory, and the file is removed when the job ends at the latest.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from llmb.files import resource_text
from llmb.values.causes import Cause
from llmb.values.errors import TargetError, UnknownOutcomeError
from llmb.values.host import Host
from llmb.values.job import Script
from llmb.values.job_status import JobHandle, JobState, JobStatus

FAILED = 1  # exit code: no job was started
SOME_STARTED = 75  # exit code: a job could not be started, but an earlier one was


def submit_detached(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Start each script that was not started before, and return a handle for every script.

    A script with a ``check`` is started again if it has ended. Raise TargetError if no job could be started, and
    UnknownOutcomeError if some jobs were started.

    A job script can source ``detached.sh`` in its directory to inspect other jobs: ``supervisor_pid DIRECTORY`` fails
    unless the supervisor of the job there is alive, and ``end_lost_job DIRECTORY`` ends the processes of a job whose
    supervisor is gone and records its end. The file ``arriving`` stays locked until the script closes file descriptor
    7, so that jobs can queue in the order of their submission.
    """
    if not scripts:
        return {}
    common = {
        "supervise.sh": _bash("detached_processes.sh", "detached_job_supervisor.sh"),
        "detached.sh": _bash("detached_processes.sh", "detached_submit_poll_cancel.sh"),
    }
    files: dict[str, str] = {}
    for script in scripts:
        texts = common | {"job.sh": script.text}
        files |= {f"{script.directory}/{name}": text for name, text in texts.items()}
        files |= script.files
    host.put(files)
    first, *others = map(_submission, scripts)
    _run(host, "\n".join([f"{first} || exit {FAILED}", *(f"{each} || exit {SOME_STARTED}" for each in others)]))
    return {script.id: JobHandle(id=script.id, directory=script.directory) for script in scripts}


def poll_detached(handles: Iterable[JobHandle], host: Host) -> Mapping[str, JobStatus]:
    """Return the status of each job, queried with one command.

    If the supervisor of a job was killed, end the rest of the job and record it as lost. Raise TargetError if the host
    cannot be reached or a status cannot be determined.
    """
    calls = [shlex.join(["poll", handle.id, handle.directory]) for handle in handles]
    if not calls:
        return {}
    lines = _run(host, "\n".join(calls)).removesuffix("\n").split("\n")  # a reason may contain other line separators
    return dict(_status(line) for line in lines)


def cancel_detached(handles: Iterable[JobHandle], host: Host) -> None:
    """Cancel jobs: send SIGTERM, and SIGKILL to all processes left when the job or its grace period has ended.

    A job that is cancelled for the second time gets no grace period. Jobs that have ended are left alone. A job that is
    not started yet is cancelled as soon as it is submitted. Raise TargetError if a job cannot be cancelled.
    """
    _run(host, "\n".join(shlex.join(["cancel", handle.directory]) for handle in handles))


def _submission(script: Script) -> str:
    seconds = [str(script.time_limit_s or 0), str(script.grace_s)]
    return shlex.join(["submit", script.directory, *seconds, "again" if script.check else ""])


def _bash(*names: str) -> str:
    return "\n".join(resource_text("llmb.hosts", name) for name in names)


def _run(host: Host, calls: str) -> str:
    result = host.run(f"{_bash('detached_processes.sh', 'detached_submit_poll_cancel.sh')}\n{calls}")
    if result.exit_code:
        error = TargetError if result.exit_code == FAILED else UnknownOutcomeError  # bash may have been killed
        raise error(f"cannot start or query jobs: {result.stderr.strip() or f'exit code {result.exit_code}'}")
    return result.stdout


def _status(line: str) -> tuple[str, JobStatus]:
    identity, state, pid, exit_code, cause, reason, time_left_s = line.split("\t")
    return identity, JobStatus(
        state=cast("JobState", state),
        job_id=pid or None,
        exit_code=int(exit_code) if exit_code else None,
        cause=cast("Cause", cause),
        reason=reason,
        time_left_s=float(time_left_s) if time_left_s else None,
    )
