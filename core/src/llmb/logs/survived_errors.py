"""Errors that a process survived, because it printed ordinary lines after them."""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path
from typing import Final

from llmb.logs.exceptions import AT_THE_END, TailLine, read_tail
from llmb.logs.files import blocks_of, read_part

AROUND: Final = 16 << 10
"""Bytes before an error that may contain its traceback, and after it that may contain ordinary lines."""


def find_continuation(path: Path, offset: int, text: str) -> int | None:
    """Return the byte from which a process continued after its errors, or None if it did not.

    The errors contain ``text``, and the first one is at ``offset``. The process survived them if it continued after the
    first one and after the last one.
    """
    last = _last_place(path, text.encode(), offset)
    starts = [_continuation_after(path, each) for each in (offset, last)]
    return None if None in starts else starts[-1]


def _continuation_after(path: Path, offset: int) -> int | None:
    """Return the byte of the first ordinary line after the error at ``offset``, or None.

    Several ordinary lines of the same rank must follow. An exception that nothing caught, the error itself or one that
    it caused, ended the process.
    """
    start = max(0, offset - AROUND)
    lines = read_tail(read_part(path, start, offset + AROUND))
    label = next((line.label for line in reversed(lines) if start + line.offset <= offset), b"")
    own = (line for line in lines if line.label == label)
    rest = [*dropwhile(lambda line: start + line.offset + len(line.line) <= offset, own)]
    ordinary = [line for line in rest[1:] if line.kind == "text"]
    if len(ordinary) <= AT_THE_END:
        return None
    errors = [line for line in rest if line.offset < ordinary[0].offset]
    return None if any(map(_ended_process, errors)) else start + ordinary[0].offset


def _ended_process(line: TailLine) -> bool:
    return line.kind == "error" and line.uncaught


def _last_place(path: Path, text: bytes, start: int) -> int:
    """Return where ``text`` is last in a log. It is at ``start``, and perhaps again later."""
    last, kept = start, b""
    for block in blocks_of(path, start):
        data = kept + block
        place = data.rfind(text)
        last = last if place < 0 else start - len(kept) + place
        start, kept = start + len(block), data[1 - len(text) :]
    return last
