"""The free space on a file system of a host, and how to get more."""

import shlex

from llmb.values.errors import TargetError
from llmb.values.host import Host

GB = 1e9

EXISTING_PARENT = 'while [ ! -e "$folder" ]; do folder=$(dirname -- "$folder"); done'
"""Bash that replaces ``$folder`` by its nearest parent that exists, because the folder itself may not exist yet."""


def free_space_gb(folder: str, host: Host) -> float:
    """Return the free space for users on the file system of ``folder``, in GB (10^9 bytes).

    The folder need not exist yet. Raise TargetError if the host cannot be reached or does not report the space.
    """
    blocks_and_size = "stat -f -c '%a %S' -- \"$folder\""  # free blocks for users, and the bytes of one
    result = host.run(f"folder={shlex.quote(folder)}\n{EXISTING_PARENT}\n{blocks_and_size}")
    try:
        blocks, block_bytes = map(int, result.stdout.split())
    except ValueError:
        raise TargetError(f"cannot determine the free space in {folder}: {result.stderr.strip()}") from None
    return blocks * block_bytes / GB


def free_space_remedy(folder: str) -> str:
    """Return the remedy for too little space in a work directory."""
    sizes = f"`du -xh -d 1 {shlex.quote(folder)} | sort -h`"
    return f"free space on that disk ({sizes} lists the sizes), or `llmb run SPEC --set target.workdir=/path/to/folder`"
