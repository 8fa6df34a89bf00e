"""The result of a command on a host."""

import attrs


@attrs.frozen(kw_only=True)
class CommandResult:
    """Exit code and output of a bash script that ran on a host."""

    exit_code: int
    stdout: str
    stderr: str = ""
