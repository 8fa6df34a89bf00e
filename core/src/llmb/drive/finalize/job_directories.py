"""Work directories that disappeared, that lost files, or that cannot be written: no framework is to blame for these."""

import shlex
from collections.abc import Mapping, Sequence

import attrs

from llmb.drive.target_group import TargetGroup
from llmb.hosts.work_directory import TRY_TO_WRITE
from llmb.values.causes import Cause
from llmb.values.errors import TargetError
from llmb.values.job_status import JobStatus

SUSPECT_CAUSES: frozenset[Cause] = frozenset({"failed", "lost", "launch failure"})
"""Causes that a scheduler reports if a job lost its directory, or could not write."""

UNWRITABLE = 3  # exit code: nothing can be written in the work directory, and standard error ends with the reason

READ_ONLY = "Read-only file system"
"""The end of an error with a remedy of its own. The signatures of logs have those for a full disk and a quota."""

MAX_FILES = 16
"""Files of a job that are checked."""

_REPORT = """
report_directory() { # id, directory, file...: print id and path, separated by a tab, of what is missing first
  local path
  for path in "${@:2}"; do
    [ -e "$path" ] || { printf '%s\\t%s\\n' "$1" "$path" && return; }
  done
}
"""


@attrs.frozen
class SuspectJob:
    """A job that may have ended because of its directory. ``files`` are paths in the directory that existed."""

    directory: str
    files: Sequence[str]
    status: JobStatus


def explain_with_directories(jobs: Mapping[str, SuspectJob], group: TargetGroup) -> dict[str, JobStatus]:
    """Return the status of each job, with the state of its directory as the cause if that explains the end.

    ``jobs`` are the jobs by the ids of their runs. Raise TargetError.
    """
    statuses = {run_id: job.status for run_id, job in jobs.items()}
    if not jobs:
        return statuses
    calls = [
        shlex.join(["report_directory", run_id, job.directory, *job.files[:MAX_FILES]]) for run_id, job in jobs.items()
    ]
    writing = f'folder={shlex.quote(group.workdir)}\n[ ! -d "$folder" ] || ({TRY_TO_WRITE}) || exit {UNWRITABLE}'
    result = group.host.run("\n".join([_REPORT, *calls, writing]))
    if result.exit_code not in (0, UNWRITABLE):
        raise TargetError(f"cannot check the directories of jobs: {result.stderr.strip()}")
    missing = dict(line.split("\t", 1) for line in result.stdout.splitlines())
    for run_id, job in jobs.items():
        if path := missing.get(run_id):
            name = path.removeprefix(f"{job.directory}/")
            deleted = f"files of its directory {job.directory} were deleted during the run, such as {name}"
            reason = f"its directory {path} disappeared" if path == job.directory else deleted
            statuses[run_id] = attrs.evolve(statuses[run_id], cause="directory lost", reason=reason, remedy="")
        elif result.exit_code and (lines := result.stderr.strip().splitlines()):
            problem = f"nothing can be written in {group.workdir}: {lines[-1]}"
            reason = "; ".join(filter(None, (statuses[run_id].reason, problem)))
            remedy = statuses[run_id].remedy or (_mount_remedy(group.workdir) if READ_ONLY in problem else "")
            statuses[run_id] = attrs.evolve(statuses[run_id], reason=reason, remedy=remedy)
    return statuses


def _mount_remedy(workdir: str) -> str:
    return (
        f"mount that file system for writing (`findmnt -T {shlex.quote(workdir)}` prints its options), "
        "or use `llmb run SPEC --set target.workdir=/path/to/folder`"
    )
