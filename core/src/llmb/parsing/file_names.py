"""The logs among the files of a directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from llmb.values.errors import Fault, LogError
from llmb.values.log_files import LogFiles

BEGIN = 64 << 10
"""Bytes of a file by which one sees that it is no text."""

PACKED = re.compile(r"\.(?:gz|bz2|xz|zst)$")
"""How the names of compressed files end."""

LIKE_A_LOG = re.compile(
    r"""(?:^|[._-])(?:log|out|err|txt|output|console|stdout|stderr|[oe]\d+)
        (?:[.-]\d+)*$  # a rank, a date, how often it was rotated
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""How the names of logs end: nobody takes a script, a lock, a table or a checkpoint for one."""


def files_below(folder: Path, known: LogFiles) -> Iterator[Path]:
    """The files in a folder and below it, but for those that the framework knows to be other things than logs.

    In the order of their paths. Raises LogError where the folder cannot be read.
    """
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(folder))) from error
    for path in files:
        if not _is_any(_name(path), known.other):
            yield path


def is_training_log(path: Path, known: LogFiles) -> bool:
    """Whether it is a log by its name, although it may not have a single step."""
    return _is_any(_name(path), known.training)


def is_named_like_a_log(path: Path) -> bool:
    """Whether people would take it for a log of whatever process."""
    return LIKE_A_LOG.search(_name(path)) is not None


def experiment(path: Path, known: LogFiles) -> str:
    """The name by which people know a log."""
    name = _name(path)
    match = re.search(known.experiment, name) if known.experiment else None
    return match[1] if match else Path(name).stem


def beginning(path: Path) -> bytes:
    """The first bytes of a file; a question mark where there is no asking, as of a pipe that has been read."""
    if not path.is_file():
        return b"?"
    try:
        with path.open("rb") as file:
            return file.read(BEGIN)
    except OSError:
        return b"?"


def _name(path: Path) -> str:
    """Its name, as it was before it was compressed."""
    return PACKED.sub("", path.name)


def _is_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
