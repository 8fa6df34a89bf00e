"""Locks of files, which the kernel frees when their process ends."""

import fcntl
import os
from pathlib import Path


def lock_file(file: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Open and lock a file. Return its descriptor, or None if another process holds the lock. Raise OSError."""
    descriptor = os.open(file, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:  # Ctrl-C too
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor
