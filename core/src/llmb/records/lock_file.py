"""Locks of files, which the kernel frees when their process ends."""

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
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


def find_stopped_holders(files: Collection[Path]) -> Mapping[Path, int]:
    """Return the locked files whose lock is held by a stopped process of this machine, with the id of the process.

    Ctrl-Z stops a process, which keeps its locks. Processes on other machines that share the files are unknown.
    """
    if not files:
        return {}  # as in most ticks; a login node may have thousands of locks
    locks = list(_read_locks())
    stopped = {process for process in {process for _, process in locks} if _is_stopped(process)}
    candidates = [(inode, process) for inode, process in locks if process in stopped]
    found: dict[Path, int] = {}
    for file in files if candidates else ():
        with suppress(OSError):
            status = file.stat()
            holders = (process for inode, process in candidates if inode == status.st_ino)
            if holder := next((process for process in holders if _has_open(process, status)), None):
                found[file] = holder
    return found


def _read_locks() -> Iterator[tuple[int, int]]:
    """Yield the inode of each locked file, and the process that holds the lock. Yield nothing if they are unknown."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()  # 1: FLOCK  ADVISORY  WRITE 12345 fd:01:1234567 0 EOF
            if len(words) == 8 and words[4].isdigit():
                yield int(words[5].rpartition(":")[2]), int(words[4])


def _is_stopped(process: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _has_open(process: int, status: os.stat_result) -> bool:
    """Check whether a process has a file open. Inodes are unique on one file system only."""
    with suppress(OSError):  # a process of another user
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(descriptor.stat(), status):
                    return True
    return False
