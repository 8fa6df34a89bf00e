"""The evidence of a failure: a line of the log, or the last messages without stack traces."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from llmb.logs.ansi_escapes import plain_text, without_escapes
from llmb.logs.failures.exceptions import find_errors, read_tail
from llmb.logs.rank_labels import split_label
from llmb.logs.read_blocks import end_of, read_part

TAIL_BYTES = 64 << 10
"""Bytes at the end of a log that are read."""

MESSAGE_BYTES = 4 << 10
"""Bytes after the beginning of an exception in which its message may begin."""

LAST_LINES = 3
LONGEST_LINE = 400


def log_tail(logs: Iterable[Path]) -> str:
    """Return the last error of the first log that has one, else the last lines of the first log that is not empty."""
    tails = [tail for path in logs if (tail := end_of(path, TAIL_BYTES)).strip()]
    for tail in tails:
        if errors := find_errors(tail):
            return as_evidence(errors[-1].line)
    lines = next(filter(None, map(read_tail, tails)), [])
    return " | ".join(as_evidence(line.line) for line in lines[-LAST_LINES:])


def as_evidence(line: bytes) -> str:
    """Return a line as text without colours, at most `LONGEST_LINE` characters of it."""
    return without_escapes(line)[0].decode(errors="replace").strip()[:LONGEST_LINE]


def with_message(path: Path, offset: int, evidence: str) -> str:
    """Return the evidence of the exception at ``offset`` with its message, if it begins below the exception.

    A message may begin with a line end. Launchers label each part of a line that a process writes in several parts,
    so below the name of an exception, the message may begin with the colon.
    """
    (label, error), *below = map(split_label, plain_text(read_part(path, offset, offset + MESSAGE_BYTES)).splitlines())
    texts = [text for of_rank, line in below if of_rank == label and (text := as_evidence(line))]
    message, following = (*texts, "", "")[:2]
    if not evidence.endswith(":"):
        is_name = error.strip().replace(b".", b"").isalnum()
        if not (label and is_name and (message == ":" or message.startswith(": "))):
            return evidence
        evidence, message = f"{evidence}:", message[1:].strip() or following
    if message.startswith("Traceback (most recent"):
        message = ""
    return f"{evidence} {message}".strip()[:LONGEST_LINE]
