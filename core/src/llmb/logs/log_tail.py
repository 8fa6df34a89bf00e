"""What a log said last, without the stack traces that bury it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from llmb.logs.ansi_escapes import ESCAPE, without_escapes
from llmb.logs.files import end_of
from llmb.logs.rank_labels import label_of

TAIL = 64 << 10
"""Bytes at the end of a log that are looked at."""

RECENT = 40
"""Lines, stack traces not counted, in which an error is taken for the end of the log rather than for an old story."""

AT_THE_END = 6
"""Lines, stack traces not counted, that an error's own message and the launcher's word of the end take at most."""

LAST_LINES = 3
LONGEST_LINE = 400

_ERROR = re.compile(
    rb"""(?: [A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|\.Empty) (?: :\ .* )? $   # an exception of Python
           | F\d{4}(?:\d{4})?\ \d\d:\d\d:\d+\.\d+\ .*                                   # a fatal line of glog or absl
           | Fatal\ Python\ error:\ .*                                                  # faulthandler
         )""",
    re.VERBOSE,
)

_EXCEPTION = re.compile(rb"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*(?:Error|Exception))(?:: |$)")

_REPORTED = re.compile(rb"Exception ignored (?:in|while)|Exception in thread |--- Logging error ---")
"""How Python begins an exception that goes by: in a finalizer, in another thread than the first, in a log handler."""

_TRACKER = b'multiprocessing/resource_tracker.py"'
"""In a frame of the process that cleans up after others: what it fails at was cleaned up before."""

_FROM_OTHERS = re.compile(
    rb"\bDist\w+Error|ChildFailedError|\bConnection\w*Error|BrokenPipeError|TimeoutError|NCCL|[Gg]loo"
    rb"|\b(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED): "  # as gRPC calls them
)
"""What a process tells when another one died, or never came."""

_TRACE = re.compile(
    rb"""\s*(?: frame\ \#\d+: | \#?\d+\ +0x[0-9a-f]+ | @\s+0x[0-9a-f]+ | PC:\ @ | 0x[0-9a-f]+:\     # C++
              | \S*\(\S*\+0x[0-9a-f]+\)\ ?\[0x | \*\*\*\ (?:Check\ failure|SIG[A-Z]+\ ) | =+\ backtrace
              | File\ ".*",?\ line\ \d+ | Traceback\ \(most | (?:Current\ t|T)hread\ 0x | Extension\ modules: # Python
              | <no\ Python\ frame> | [~^\s]+$ | [-=]+$
            )""",
    re.VERBOSE,
)


def log_tail(logs: Iterable[Path]) -> str:
    """The error that ended a log, of the first log that has one; else the last lines of the first log that has any."""
    told = [lines for path in logs if (lines := meaningful(end_of(path, TAIL)))]
    for lines in told:
        if error := last_error(lines):
            return shown(error)
    return " | ".join(shown(line) for line in told[0][-LAST_LINES:]) if told else ""


def last_error(lines: Sequence[bytes]) -> bytes | None:
    """The last line that is an exception or a fatal message, if it is among the recent ones."""
    return next((line for line in reversed(lines[-RECENT:]) if _is_error(line)), None)


def final_error(lines: Sequence[bytes]) -> bytes | None:
    """As `last_error`, of the very last lines, and one that ended the process: what Python only reports goes by."""
    with_those_before = reversed([*pairwise([b"", *lines])][-AT_THE_END:])
    return next((line for before, line in with_those_before if _is_error(line) and not _REPORTED.search(before)), None)


def _is_error(line: bytes) -> bool:
    return _ERROR.match(_unlabelled(line).strip()) is not None


def own_exception(line: bytes) -> str:
    """The name of the exception that this line tells; empty where another process brought it about, or it is none."""
    told = _EXCEPTION.match(_unlabelled(line).strip())
    return told[1].decode() if told and not _FROM_OTHERS.search(line) else ""


def meaningful(tail: bytes) -> list[bytes]:
    """The lines without empty ones and without what is only a stack trace, its lines of code included.

    Nor is the exception of Python's resource tracker there, which means nothing.
    """
    kept: list[bytes] = []
    code_follows = of_tracker = False
    for line in tail.splitlines():
        text = _unlabelled(line)
        is_code = code_follows and text.startswith(b"    ")
        is_trace = _TRACE.match(text) is not None
        if is_trace and b'File "' in text:
            of_tracker = _TRACKER in text
        elif text.strip() and not is_code and not is_trace:
            if not (of_tracker and _is_error(line)):
                kept.append(line.strip())
            of_tracker = False
        code_follows = is_trace
    return kept


def shown(line: bytes) -> str:
    """A line as evidence: text without colours, and not too long."""
    return without_escapes(line)[0].decode(errors="replace").strip()[:LONGEST_LINE]


def _unlabelled(line: bytes) -> bytes:
    """What the process itself wrote, without colours."""
    text = without_escapes(line)[0] if ESCAPE in line else line
    return text[len(label_of(text)) :]
