"""Cancellation of jobs with scancel."""

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from llmb import BusyError, Host, JobHandle, TargetError, lock_function
from llmb_slurm.bash_files import queries
from llmb_slurm.poll import find_jobs
from llmb_slurm.submit import BUSY

TIMEOUT_S = 600.0


def cancel_jobs(handles: Sequence[JobHandle], host: Host) -> None:
    """Cancel these jobs, found by their ids or marks, and no others. Jobs that have ended are left alone.

    A job without an id may be about to be submitted, because submit.sh continues without the process that started it.
    Raise BusyError if that takes long, and TargetError if Slurm does not respond, or does not cancel a job.
    """
    _cancel_found([each for each in handles if each.job_id], host)
    if without_id := [each for each in handles if not each.job_id]:
        folders = dict.fromkeys(str(PurePosixPath(each.directory).parent) for each in without_id)
        _run(host, "await_submissions", *folders)
        _cancel_found(without_id, host)


def _cancel_found(handles: Sequence[JobHandle], host: Host) -> None:
    if handles and (job_ids := find_jobs(handles, host)):
        _run(host, "cancel", *job_ids)


def _run(host: Host, *call: str) -> None:
    """Call a function of cancel.sh. Raise TargetError."""
    result = host.run("\n".join([lock_function(), queries("cancel.sh"), shlex.join(call)]), timeout_s=TIMEOUT_S)
    if result.exit_code:
        error = BusyError if result.exit_code == BUSY else TargetError
        raise error(f"cannot cancel jobs: {result.stderr.strip()}")
