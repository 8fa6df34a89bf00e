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


def texts_below(folder: Path, known: LogFiles) -> Iterator[Path]:
    """The text files in a folder and below it, but for those that the framework knows to be other things.

    In the order of their paths. Raises LogError where the folder cannot be read.
    """
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise LogError(Fault(message=f"cannot be read: {error.strerror}", file=str(folder))) from error
    for path in files:
        if not _is_any(path, known.other) and b"\0" not in beginning(path):
            yield path


def is_training_log(path: Path, known: LogFiles) -> bool:
    """Whether it is a log by its name, although it may not have a single step."""
    return _is_any(path, known.training)


def experiment(path: Path, known: LogFiles) -> str:
    """The name by which people know a log."""
    match = re.search(known.experiment, path.name) if known.experiment else None
    return match[1] if match else path.stem


def beginning(path: Path) -> bytes:
    """The first bytes of a file; a question mark where there is no asking, as of a pipe that has been read."""
    try:
        with path.open("rb") as file:
            return file.read(BEGIN)
    except OSError:
        return b"?"


def _is_any(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in patterns)
