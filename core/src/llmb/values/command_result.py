"""What a command on a host answered."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class CommandResult:
    """Exit status and output of bash that ran on a host."""

    exit_code: int
    stdout: str
    stderr: str = ""
