"""Reading of log files in blocks, so that memory does not depend on their size."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

BLOCK_BYTES = 1 << 20  # smaller blocks cost more calls; larger ones are no faster and take memory


def blocks_of(path: Path, offset: int = 0, *, opener: Callable[[str, int], int] | None = None) -> Iterator[bytes]:
    """Yield the content of a file from an offset, or nothing if it does not exist. Raise OSError on other errors.

    Without an opener, the file may be a pipe.
    """
    try:
        file = open(path, "rb", buffering=0, opener=opener)  # noqa: SIM115  # closed below
    except FileNotFoundError:
        return
    with file:
        if offset:  # a pipe cannot seek
            file.seek(offset)
        while block := file.read(BLOCK_BYTES):
            yield block


def read_part(path: Path, start: int, end: int) -> bytes:
    """Return the bytes of a file from ``start`` to before ``end``, or to the end of the file if it is shorter."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(end - start)


def end_of(path: Path, size: int) -> bytes:
    """Return the last ``size`` bytes of a file, or nothing if it is not a regular file, such as a pipe."""
    if not os.path.isfile(path):
        return b""
    end = path.stat().st_size
    return read_part(path, max(0, end - size), end)


def tail_starts(paths: Iterable[Path], starts: Mapping[Path, int], size: int) -> dict[Path, int]:
    """Return where the last ``size`` bytes of each log begin, or the byte from which it counts, if that is later."""
    return {path: max(starts.get(path, 0), path.stat().st_size - size) for path in paths}


def line_around(path: Path, offset: int, before: int, after: int) -> tuple[bytes, bytes, int]:
    """Return the line at ``offset``, in two parts: before that place, and from there on, at most so many bytes.

    If the line begins further ahead, the first part is empty. If line ends are at that place, as where a message begins
    with one, the line below them counts. The third value is their number.
    """
    start = max(0, offset - before)
    data = read_part(path, start, offset + after)
    head, rest = data[: offset - start], data[offset - start :]
    text = rest.lstrip(b"\n")
    ends = len(rest) - len(text)
    first = b"" if ends else re.split(rb"[\r\n]", head)[-1]
    return first if len(first) < before else b"", re.split(rb"[\r\n]", text)[0], ends
