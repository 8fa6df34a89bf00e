"""What a command on a host answered."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Answer:
    """Exit status and output of bash that ran on a host."""

    exit_status: int
    stdout: str
    stderr: str = ""
