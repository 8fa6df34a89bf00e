"""Whether what a task makes has room on the target."""

from __future__ import annotations

import shlex

from llmb.hookspecs import Host
from llmb.values.errors import TargetError

GB = 1e9

NEAREST = 'while [ ! -e "$folder" ]; do folder=$(dirname -- "$folder"); done'
"""Bash that goes up from ``$folder`` to what is there already, since it may still have to be made."""


def free_space_gb(folder: str, host: Host) -> float:
    """What is free there in GB (10^9 bytes), as its file system says. Raises TargetError where one cannot ask."""
    blocks_and_size = "stat -f -c '%a %S' -- \"$folder\""  # free blocks for users, and the bytes of one
    answer = host.run(f"folder={shlex.quote(folder)}\n{NEAREST}\n{blocks_and_size}")
    try:
        blocks, block_bytes = map(int, answer.stdout.split())
    except ValueError:
        raise TargetError(f"cannot ask how much space is free in {folder}: {answer.stderr.strip()}") from None
    return blocks * block_bytes / GB
