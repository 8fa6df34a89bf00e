"""Work directories that disappeared, or in which nothing can be written: causes for which no framework is to blame."""

import shlex
from collections.abc import Mapping

import attrs

from llmb.drive.target_group import TargetGroup
from llmb.hosts.work_directory import TRY_TO_WRITE
from llmb.values.causes import Cause
from llmb.values.errors import TargetError
from llmb.values.job_status import JobStatus

DOUBTFUL: frozenset[Cause] = frozenset({"failed", "lost", "launch failure"})
"""Causes that a scheduler reports if a job lost its directory, or could not write."""

UNWRITABLE = 3  # exit code: nothing can be written in the work directory, and standard error ends with the reason

_REPORT = """
report_directory() { # id, directory: print the id if the directory is missing
  [ -d "$2" ] || printf '%s\\n' "$1"
}
"""


def explain_with_directories(jobs: Mapping[str, tuple[str, JobStatus]], group: TargetGroup) -> dict[str, JobStatus]:
    """Return the status of each job, with the state of its directory as the cause if that explains the end.

    ``jobs`` maps the id of each run to its directory and its status. Raise TargetError.
    """
    statuses = {run_id: status for run_id, (_, status) in jobs.items()}
    if not jobs:
        return statuses
    calls = [shlex.join(["report_directory", run_id, folder]) for run_id, (folder, _) in jobs.items()]
    writing = f'folder={shlex.quote(group.workdir)}\n[ ! -d "$folder" ] || ({TRY_TO_WRITE}) || exit {UNWRITABLE}'
    result = group.host.run("\n".join([_REPORT, *calls, writing]))
    if result.exit_code not in (0, UNWRITABLE):
        raise TargetError(f"cannot check the directories of jobs: {result.stderr.strip()}")
    missing = set(result.stdout.splitlines())
    for run_id, (folder, _) in jobs.items():
        if run_id in missing:
            reason = f"its directory {folder} disappeared"
            statuses[run_id] = attrs.evolve(statuses[run_id], cause="directory lost", reason=reason, remedy="")
        elif result.exit_code and (lines := result.stderr.strip().splitlines()):
            problem = f"nothing can be written in {group.workdir}: {lines[-1]}"
            reason = "; ".join(filter(None, (statuses[run_id].reason, problem)))
            statuses[run_id] = attrs.evolve(statuses[run_id], reason=reason)
    return statuses
