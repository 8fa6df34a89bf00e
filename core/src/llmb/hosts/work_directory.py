"""The work directory of a target, checked before anything is recorded."""

import shlex

from llmb.hookspecs import Host
from llmb.values.errors import TargetError

CHECK_TIMEOUT_S = 120.0

TRY_TO_WRITE = """
file=$(mktemp -- "$folder/.check.XXXXXX") || exit 1
head -c 65536 /dev/zero >"$file"
code=$?
rm -f -- "$file"
exit $code
"""
"""Bash that exits with 0 if a file can be written in ``$folder``, else prints the reason."""


def check_work_directory(workdir: str, host: Host, host_name: str) -> None:
    """Create the directory for runs if it is missing, and write a file there. Raise TargetError if that is impossible.

    A full disk and an exceeded quota prevent the file, too.
    """
    result = host.run(
        f'folder={shlex.quote(f"{workdir}/runs")}\nmkdir -p -- "$folder" || exit 1\n{TRY_TO_WRITE}',
        timeout_s=CHECK_TIMEOUT_S,
    )
    if result.exit_code:
        reason = (result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"])[-1]
        advice = "fix this, or set target.workdir to another directory"
        raise TargetError(f"cannot write in the work directory {workdir} on {host_name}: {reason}; {advice}")
