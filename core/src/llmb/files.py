"""Atomic writes, locks, files that may not exist or may be pipes, and the text files that packages ship."""

import errno
import fcntl
import functools
import os
import stat
import threading
from importlib.resources import files
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
    """Replace a file in one step, after its content is synced to disk.

    Raise OSError if that fails. The old file then stays, and no partial file is left. Without ``sync``, which takes
    time, a power failure may leave an empty file.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.partial")
    try:
        descriptor = open_regular(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def open_regular(path: str | Path, flags: int, mode: int = 0o600) -> int:
    """Open a file and return its descriptor. Raise OSError for a pipe or another special file, without waiting for it.

    Also an opener for `open`.
    """
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe without a reader, or a socket
            raise _not_regular(path) from None
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return descriptor
    os.close(descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise _not_regular(path)


def _not_regular(path: str | Path) -> OSError:
    return OSError(errno.EINVAL, "Not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    """Return the content of a file. Raise OSError for a pipe or another special file, without waiting for it."""
    with open(path, "rb", opener=open_regular) as file:
        return file.read()


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


def file_exists(path: Path) -> bool:
    """Check whether a path exists. Raise OSError if that is unknown, which `Path.exists` of Python 3.14 does not."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@functools.lru_cache(maxsize=256)  # each run of a sweep needs the same files
def resource_text(package: str, name: str) -> str:
    """Return the text of a file in the folder of an installed package, such as a bash script to run in a job."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
