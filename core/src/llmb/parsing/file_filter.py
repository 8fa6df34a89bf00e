"""The logs among the files of a directory."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from llmb.values.errors import Fault, LogError
from llmb.values.log_file_names import LogFiles

MAX_FILES = 100_000
"""The most files of a folder. More are the whole disk of a user rather than the logs of a job."""

SAMPLE_BYTES = 64 << 10
"""Bytes at the beginning of a file that show whether it is text. Each other part of a sample has this size, too."""

PARTS = 8
"""Parts of a sample after the beginning of a file, the last one at its end."""

MIN_READABLE = 0.7
"""Share of readable bytes in a text. Random bytes have about half."""

_CONTROL = bytes({*range(32), 127} - {*b"\t\n\r\b\f\x1b"})

PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$")
"""The endings of compressed files."""

LIKE_A_LOG = re.compile(
    r"""(?:^|[._-])(?:log|out|err|txt|output|console|stdout|stderr|[oe]\d+)
        (?:[.-]\d+)*$  # a rank, a date, the number of a rotated log
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The endings of logs. Scripts, locks, tables and checkpoints have other endings."""


def files_below(folder: Path, known: LogFiles) -> Iterator[Path]:
    """Yield the files in a folder and below it, sorted by path, except files that the framework excludes.

    Yield also the folders below that are unreadable, so that reading them reports the error. Raise LogError if the
    folder itself is unreadable, or has more than `MAX_FILES`.
    """
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(folder))) from error
    unreadable: list[str] = []

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a folder that was removed meanwhile has no logs
            unreadable.append(error.filename)

    walked = os.walk(folder, onerror=note)
    files = list(islice((os.path.join(parent, name) for parent, _, names in walked for name in names), MAX_FILES + 1))
    if len(files) > MAX_FILES:
        message = f"has more than {MAX_FILES:,} files; name the folder with the logs"
        raise LogError(Fault(message=message, file=str(folder)))
    for path in sorted(map(Path, [*filter(_is_file, files), *unreadable])):
        if not is_named_as(path, known.other):
            yield path


def _is_file(path: str) -> bool:
    """Check whether a path is a file, or one without access. Pipes and links to nothing are no files."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        return error.errno == errno.EACCES


def is_named_as(path: Path, patterns: tuple[str, ...]) -> bool:
    """Check whether the name of a file matches any of these shell patterns."""
    return any(fnmatch(_name(path), pattern) for pattern in patterns)


def is_named_like_a_log(path: Path) -> bool:
    """Check whether a file is named like a log of any process."""
    return LIKE_A_LOG.search(_name(path)) is not None


def experiment(path: Path, known: LogFiles) -> str:
    """Return the name of the experiment of a log, by default the file name without its ending."""
    name = _name(path)
    match = re.search(known.experiment, name) if known.experiment else None
    return match[1] if match else Path(name).stem


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file, or a question mark if it is unreadable or a pipe."""
    if not os.path.isfile(path):
        return b"?"
    try:
        with path.open("rb") as file:
            return file.read(SAMPLE_BYTES)
    except OSError:
        return b"?"


def sample(path: Path) -> bytes:
    """Return the beginning of a file. If it is binary, add parts of the rest, which may be text.

    A log has a hole at its beginning if it was truncated while its writer continued.
    """
    begin = beginning(path)
    if len(begin) < SAMPLE_BYTES or not is_binary(begin):
        return begin
    parts = [begin]
    try:
        with path.open("rb") as file:
            rest = max(0, os.fstat(file.fileno()).st_size - SAMPLE_BYTES)
            for part in range(1, PARTS + 1):
                file.seek(rest * part // PARTS)
                parts.append(file.read(SAMPLE_BYTES))
    except OSError:
        return begin
    return b"".join(parts)


def is_binary(part: bytes) -> bool:
    """Check whether most bytes of a part or a sample of a file are not text. Holes of NUL bytes do not count."""
    text = part.replace(b"\0", b"")
    readable = text.decode(errors="ignore").encode().translate(None, _CONTROL)
    return len(readable) < MIN_READABLE * len(text) or bool(part and not text)


def _name(path: Path) -> str:
    """Return the file name without the ending of a compressed file."""
    return PACKED.sub("", path.name)
