"""Reading and writing files of a record. Errors name what to do next."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from llmb.files import read_regular
from llmb.values.errors import RecordError

T = TypeVar("T")

OTHER_HOME = "set LLMB_HOME to use another folder for all records"


def write_synced(file: Path, data: bytes) -> None:
    """Write a file of a record that does not exist yet. Raise OSError."""
    with open(file, "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())


def read_file(file: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist. Raise RecordError."""
    return unless_missing(read_regular, file)


def unless_missing(read: Callable[[Path], T], file: Path) -> T | None:
    """Return what ``read`` returns for a file, or None if the file does not exist. Raise RecordError."""
    try:
        return read(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def report_write_errors(directory: Path, remedy: str = "") -> Iterator[None]:
    """Turn an OSError into a RecordError with a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not remedy and not directory.exists():
            reason = (
                f"the record {directory} was deleted; its job may continue, and llmb can neither follow nor cancel it"
            )
            raise RecordError(reason) from error
        reason = error.strerror or str(error)
        remedy = remedy or f"nothing is lost; fix this, then resume with `llmb attach {directory.name}`"
        raise RecordError(f"cannot write the record {directory}: {reason}; {remedy}") from error
