"""The last messages of a log, without stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from llmb.logs.ansi_escapes import ESCAPE, without_escapes
from llmb.logs.files import end_of
from llmb.logs.rank_labels import label_of

TAIL = 64 << 10
"""Bytes at the end of a log that are read."""

RECENT = 40
"""Lines at the end, without stack traces, in which an error counts as the reason of the end."""

AT_THE_END = 6
"""Most lines, without stack traces, that an error message and the launcher's report of it take."""

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
"""Lines before exceptions that do not end the process: in a finalizer, in another thread, in a log handler."""

_TRACKER = b'multiprocessing/resource_tracker.py"'
"""Part of a stack frame of the process that cleans up for others. Its exceptions mean nothing."""

_FROM_OTHERS = re.compile(
    rb"\bDist\w+Error|ChildFailedError|\bConnection\w*Error|BrokenPipeError|TimeoutError|NCCL|[Gg]loo"
    rb"|\b(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED): "  # the status codes of gRPC
)
"""Errors of a process that lost the connection to another process, or never reached it."""

_TRACE = re.compile(
    rb"""\s*(?: frame\ \#\d+: | \#?\d+\ +0x[0-9a-f]+ | @\s+0x[0-9a-f]+ | PC:\ @ | 0x[0-9a-f]+:\     # C++
              | \S*\(\S*\+0x[0-9a-f]+\)\ ?\[0x | \*\*\*\ (?:Check\ failure|SIG[A-Z]+\ ) | =+\ backtrace
              | File\ ".*",?\ line\ \d+ | Traceback\ \(most | (?:Current\ t|T)hread\ 0x | Extension\ modules: # Python
              | <no\ Python\ frame> | [~^\s]+$ | [-=]+$
            )""",
    re.VERBOSE,
)


def log_tail(logs: Iterable[Path]) -> str:
    """Return the last error of the first log that has one, else the last lines of the first log that is not empty."""
    tails = [lines for path in logs if (lines := meaningful_lines(end_of(path, TAIL)))]
    for lines in tails:
        if error := last_error(lines):
            return as_evidence(error)
    return " | ".join(as_evidence(line) for line in tails[0][-LAST_LINES:]) if tails else ""


def last_error(lines: Sequence[bytes]) -> bytes | None:
    """Return the last line that is an exception or a fatal message, if it is among the last `RECENT` ones."""
    return next((line for line in reversed(lines[-RECENT:]) if _is_error(line)), None)


def final_error(lines: Sequence[bytes]) -> bytes | None:
    """Return the last error among the last `AT_THE_END` lines, except errors that do not end the process."""
    with_line_before = reversed([*pairwise([b"", *lines])][-AT_THE_END:])
    return next((line for before, line in with_line_before if _is_error(line) and not _REPORTED.search(before)), None)


def _is_error(line: bytes) -> bool:
    return _ERROR.match(_unlabelled(line).strip()) is not None


def own_exception(line: bytes) -> str:
    """Return the name of the exception in a line, or "" if there is no exception or another process caused it."""
    match = _EXCEPTION.match(_unlabelled(line).strip())
    return match[1].decode() if match and not _FROM_OTHERS.search(line) else ""


def meaningful_lines(tail: bytes) -> list[bytes]:
    """Return the lines without empty lines, stack traces and exceptions of Python's resource tracker."""
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


def as_evidence(line: bytes) -> str:
    """Return a line as text without colours, at most `LONGEST_LINE` characters of it."""
    return without_escapes(line)[0].decode(errors="replace").strip()[:LONGEST_LINE]


def _unlabelled(line: bytes) -> bytes:
    """Return a line without rank labels and colours."""
    text = without_escapes(line)[0] if ESCAPE in line else line
    return text[len(label_of(text)) :]
