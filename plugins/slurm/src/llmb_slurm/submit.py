"""Submission of jobs with sbatch, each exactly once."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from llmb import BusyError, Host, JobHandle, Script, TargetError, UnknownOutcomeError, assignments, lock_function
from llmb_slurm.bash_files import bash_files
from llmb_slurm.job_states import ENDED_STATES
from llmb_slurm.rejected_and_stuck_jobs import find_remedy
from llmb_slurm.sbatch_directives import job_mark

BATCH_SIZE = 200  # jobs in one command, so that it ends in time even if the controller is slow
TIMEOUT_S = 600.0
BUSY = 73  # exit code of submit.sh if another process holds the lock
NOT_SUBMITTED = (1, BUSY)  # after any other exit code, as of a killed process, the last job may have been submitted

ERROR = re.compile(r"sbatch: error: |\n")  # what divides errors; submit.sh replaces ends of lines by blanks
MORE_HELP = 'Try "sbatch --help" for more information'


def submit_jobs(scripts: Sequence[Script], host: Host) -> Mapping[str, JobHandle]:
    """Submit the jobs that were not submitted before, and return a handle for every job.

    A job that sbatch rejects has a handle without a job id and with the reason. Raise TargetError if no job was
    submitted because Slurm or the host does not respond, BusyError if another process submits meanwhile, and
    UnknownOutcomeError if some jobs were submitted or may have been.
    """
    handles: dict[str, JobHandle] = {}
    try:
        for begin in range(0, len(scripts), BATCH_SIZE):
            batch = scripts[begin : begin + BATCH_SIZE]
            files = {f"{script.directory}/job.sh": script.text for script in batch}
            host.put(files | {path: text for script in batch for path, text in script.files.items()})
            handles |= _submit(batch, host)
    except TargetError as error:
        if any(handle.job_id for handle in handles.values()):
            raise UnknownOutcomeError(*error.faults) from error
        raise
    return handles


def _submit(scripts: Sequence[Script], host: Host) -> dict[str, JobHandle]:
    calls = []
    for (folder, *defaults), group in groupby(sorted(scripts, key=_group), _group):
        calls += [shlex.join(["lock_folder", folder]), shlex.join(["use_login_defaults", *defaults])]
        calls += [
            shlex.join(["add_job", each.id, job_mark(each.id, each.directory), each.directory, each.check])
            for each in group
        ]
        calls.append("submit_jobs")
    result = host.run("\n".join([submission_functions(), *calls, 'exit "$failed"']), timeout_s=TIMEOUT_S)
    directories = {script.id: script.directory for script in scripts}
    handles = [_handle(line, directories) for line in filter(None, result.stdout.split("\n"))]
    if result.exit_code:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        message = f"cannot submit jobs: {lines[-1]}"
        if result.exit_code not in NOT_SUBMITTED or any(handle.job_id for handle in handles):
            raise UnknownOutcomeError(message)
        if result.exit_code == BUSY:
            raise BusyError(message)
        raise TargetError(message)
    return {handle.id: handle for handle in handles}


def rejection_reason(message: str) -> str:
    """Return the errors in the output of sbatch on one line: those of the site's plugins and that of Slurm."""
    errors = (each.removeprefix("sbatch: ").removesuffix(MORE_HELP).strip() for each in ERROR.split(message))
    return "; ".join(filter(None, errors))


def submission_functions() -> str:
    """Return the bash functions that submit jobs. They leave only the variables of a login in the environment."""
    files = bash_files("job_id.sh", "login_defaults.sh", "sbatch_environment.sh", "submit.sh")
    return "\n".join([lock_function(), files, assignments(ended_states=ENDED_STATES)])


def login_defaults(script: Script) -> tuple[str, str]:
    """Return "account" and "partition", each "" if the script sets it: the arguments of `use_login_defaults`."""
    account, partition = ("" if f"\n#SBATCH --{name}=" in script.text else name for name in ("account", "partition"))
    return account, partition


def _group(script: Script) -> tuple[str, str, str]:
    """Return the folder to lock, and the login defaults: equal in each group."""
    return str(PurePosixPath(script.directory).parent), *login_defaults(script)


def _handle(line: str, directories: Mapping[str, str]) -> JobHandle:
    identity, job_id, message = line.split("\t", 2)
    if job_id:
        return JobHandle(id=identity, directory=directories[identity], job_id=job_id)
    refused = f"sbatch rejected the job: {rejection_reason(message) or 'it printed no reason'}"
    return JobHandle(id=identity, directory=directories[identity], refused=refused, remedy=find_remedy(message))
