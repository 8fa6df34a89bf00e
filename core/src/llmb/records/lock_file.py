"""Locks of files, which the kernel frees when their process ends."""

import fcntl
import os
from pathlib import Path

from llmb.files import open_regular


def lock_file(file: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Open and lock a file. Return its descriptor, or None if another process holds the lock. Raise OSError."""
    descriptor = open_regular(file, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:  # Ctrl-C too
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor


def is_locked(file: Path) -> bool:
    """Check whether another process holds the lock of a file. Raise OSError if the file system cannot lock."""
    try:
        descriptor = open_regular(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
