"""The evidence of a failure: a line of the log, or the last messages without stack traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from llmb.logs.ansi_escapes import without_escapes
from llmb.logs.failures.exceptions import find_errors, read_tail
from llmb.logs.read_blocks import end_of, read_part, tail_starts

TAIL = 64 << 10
"""Bytes at the end of a log that are read."""

SEARCHED_FOR_RANK = 256 << 10
"""Bytes at the end of a log in which the last line of a rank is searched."""

LAST_LINES = 3
LONGEST_LINE = 400


@attrs.frozen
class LogLine:
    """A line, its log, and the byte where the line begins."""

    path: Path
    text: bytes
    offset: int


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


def last_lines(
    logs: Iterable[Path], starts: Mapping[Path, int], is_report: Callable[[bytes], bool]
) -> Iterator[LogLine]:
    """Yield the lines at the ends of the logs that are no reports of launchers and no stack traces."""
    for path, start in tail_starts(logs, starts, SEARCHED_FOR_RANK).items():
        for line in read_tail(read_part(path, start, path.stat().st_size)):
            if line.kind == "text" and not is_report(line.line):
                yield LogLine(path, line.line, start + line.offset)
