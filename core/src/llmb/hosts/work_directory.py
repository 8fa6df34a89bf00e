"""The work directory of a target: who can change it, and whether llmb can write there."""

import shlex

from llmb.files import resource_text
from llmb.values.errors import TargetError
from llmb.values.host import Host

CHECK_TIMEOUT_S = 120.0
UNSAFE = 3  # exit code: other users can change the directory

TRY_TO_WRITE = """
file=$(mktemp -- "$folder/.check.XXXXXX") || exit 1
head -c 65536 /dev/zero >"$file"
code=$?
rm -f -- "$file"
exit $code
"""
"""Bash that exits with 0 if a file can be written in ``$folder``, else prints the reason."""


def check_work_directory(workdir: str, host: Host, host_name: str, *, shared: bool = False) -> None:
    """Create the work directory if it is missing, and write a file in it. Raise TargetError if that is impossible.

    A full disk and an exceeded quota prevent the file, too. Raise TargetError, with the command that corrects this, if
    another user owns the directory, or if others can write to it. With ``shared``, its owner may be another user, and a
    group of the user may write to it.
    """
    result = host.run(
        f"""{access_check(workdir, shared=shared)} || exit {UNSAFE}
folder=$workdir/runs
create_directories || {{ explain_dangling_link; exit 1; }}
check_all || exit {UNSAFE}
({TRY_TO_WRITE}) && exit
[ -z "$shared" ] || [ -w "$folder" ] || explain_closed "$folder" "$workdir/tasks" "$workdir/cache"
exit 1""",
        timeout_s=CHECK_TIMEOUT_S,
    )
    if not result.exit_code:
        return
    reason = (result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"])[-1]
    if result.exit_code == UNSAFE:
        raise TargetError(f"the work directory {workdir} on {host_name} is not safe: {reason}")
    advice = "fix this, or `llmb run SPEC --set target.workdir=/path/to/folder`"
    raise TargetError(f"cannot write in the work directory {workdir} on {host_name}: {reason}; {advice}")


def access_check(workdir: str, *, shared: bool) -> str:
    """Return bash that fails with a message if users who are not trusted can change an existing work directory."""
    settings = f"workdir={shlex.quote(workdir)} shared={'yes' if shared else ''}"
    return f"{settings}\n{resource_text('llmb.hosts', 'work_directory.sh')}\ncheck_all"
