"""Cancellation of jobs with scancel."""

import shlex
from collections.abc import Sequence

from llmb import Host, JobHandle, TargetError
from llmb_slurm.bash_files import queries
from llmb_slurm.poll import find_jobs

TIMEOUT_S = 600.0


def cancel_jobs(handles: Sequence[JobHandle], host: Host) -> None:
    """Cancel these jobs, found by their ids or marks, and no others. Jobs that have ended are left alone.

    Raise TargetError if Slurm does not respond, or does not cancel one of them.
    """
    job_ids = find_jobs(handles, host)
    if not job_ids:
        return
    script = f"{queries('cancel.sh')}\n{shlex.join(['cancel', *job_ids])}"
    result = host.run(script, timeout_s=TIMEOUT_S)
    if result.exit_code:
        raise TargetError(f"cannot cancel jobs: {result.stderr.strip()}")
