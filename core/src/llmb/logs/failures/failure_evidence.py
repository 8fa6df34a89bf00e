"""The evidence of a failure: a line of the log, or the last messages without stack traces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llmb.logs.ansi_escapes import without_escapes
from llmb.logs.failures.exceptions import find_errors, read_tail
from llmb.logs.read_blocks import end_of

TAIL = 64 << 10
"""Bytes at the end of a log that are read."""

LAST_LINES = 3
LONGEST_LINE = 400


def log_tail(logs: Iterable[Path]) -> str:
    """Return the last error of the first log that has one, else the last lines of the first log that is not empty."""
    tails = [tail for path in logs if (tail := end_of(path, TAIL)).strip()]
    for tail in tails:
        if errors := find_errors(tail):
            return as_evidence(errors[-1].line)
    lines = next(filter(None, map(read_tail, tails)), [])
    return " | ".join(as_evidence(line.line) for line in lines[-LAST_LINES:])


def as_evidence(line: bytes) -> str:
    """Return a line as text without colours, at most `LONGEST_LINE` characters of it."""
    return without_escapes(line)[0].decode(errors="replace").strip()[:LONGEST_LINE]
