"""Exceptions and fatal messages in a part of a log, of every rank that labels its lines."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import attrs

from llmb.logs.ansi_escapes import ESCAPE, without_escapes
from llmb.logs.rank_labels import label_of, without_time

SEARCHED: Final = 4 << 20
"""Bytes before the end of a log that are searched: several hundred lines of each of several hundred ranks."""

RECENT: Final = 200
"""Lines of a rank, without stack traces, in which an error may be the reason of the end."""

AT_THE_END: Final = 6
"""Most ordinary lines of a rank after its last error, and for each further error."""

_ERROR = re.compile(
    rb"""(?: (?:[A-Za-z_]\w*\.)* (?: \w+(?:Error|Exception|Interrupt|Exit) | Exception | (?<=\.)(?:Error|Empty)
                                   | RayTaskError\(\w+\) | \b(?:struct|zlib|re|select|lmdb)\.error )
             (?: : (?: \ .* )? )? $                                                     # an exception of Python
           | F\d{4}(?:\d{4})?\ \d\d:\d\d:\d+\.\d+\ .*                                   # a fatal line of glog or absl
           | Fatal\ Python\ error:\ .*                                                  # faulthandler
         )""",
    re.VERBOSE,
)
_AFTER_FRAMES = re.compile(
    rb"""(?: (?:[A-Za-z_]\w*\.)*  _*[A-Z]\w*[a-z]\w*
           | (?:[A-Za-z_]\w*\.)+ \w*(?:error|exception|timeout)  # elsewhere the name of a logger
         ) (?: : (?: \ .* )? )? $""",
    re.VERBOSE,
)
"""An exception of any name, as Python prints it after the frames of a traceback."""

_NAME = re.compile(rb"((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)(?:(?<=RayTaskError)\((\w+)\))?(?::(?: |$)|$)")
"""The module and the name of an exception, and the name of the cause that Ray adds."""

_OF_TASK = re.compile(rb"(?:[A-Za-z_]\w*\.)*RayTaskError\(\w+\):")
"""An exception of a task of Ray. Its message is usually the traceback of its cause."""

_JOINED = re.compile(rb"(\w+?(?:Error|Exception))\1+")
"""The same name several times, because ranks without labels wrote it at the same time."""

_WORTH_READING = re.compile(rb"Error|Exception|Interrupt|Exit|Empty|\.error\b|Fatal Python|(?m:^F\d{4})|Traceback \(")
"""A text without any of these has no error."""

_REPORTED = re.compile(
    rb"(?i)Exception ignored (?:in|while)|Exception in thread |--- Logging error ---|\bimport\b.*: Traceback \(most"
)
"""Lines before exceptions that do not end the process: in a finalizer, in another thread, in a log handler, in the
import of an optional module."""

_CHAINED = re.compile(rb"During handling of the above exception|The above exception was the direct cause")

_OUTERMOST_FRAMES = (b", in <module>", b", in _run_module_as_main")
"""Ends of the first frame of an exception that nothing caught. The traceback of a caught one begins where it is caught.
"""

_GROUP = b"Exception Group Traceback (most recent call last):"
_MARGIN = re.compile(rb" *\| ?| +(?=\+-)")
"""What Python prints at the beginning of each line of an exception group."""

_WRAPPER = re.compile(rb"(?:[A-Za-z_]\w*\.)*(?:(?:Base)?ExceptionGroup|ProcessRaisedException|CheckpointException):")
"""An exception that contains the errors of others, which are printed after it."""

_TRACKER = b'multiprocessing/resource_tracker.py"'
"""Part of a stack frame of the process that cleans up for others. Its exceptions mean nothing."""

_FROM_OTHERS = re.compile(
    rb"\bDist\w+Error|ChildFailedError|\bConnection\w*Error|BrokenPipeError|TimeoutError|NCCL|\bnccl[A-Z]|[Gg]loo"
    rb"|\b(?:Actor(?:Died|Unavailable)|NodeDied|WorkerCrashed)Error\b|HCCL|\bHccl[A-Z]"  # of Ray; NCCL of Ascend
    rb"|\b(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED): "  # the status codes of gRPC
    rb"|^(?:[\w.]+\.)?(?:KeyboardInterrupt|SystemExit|SignalException|SIGTERMException|GeneratorExit)\b"
)
"""Errors of a process that lost the connection to another process, never reached it, or received a signal."""

_TRACE = re.compile(
    rb"""\s*(?: frame\ \#\d+: | \#?\d+\ +0x[0-9a-f]+ | @\s+0x[0-9a-f]+ | PC:\ @ | 0x[0-9a-f]+:\     # C++
              | \S*\(\S*\+0x[0-9a-f]+\)\ ?\[0x | \*\*\*\ (?:Check\ failure|SIG[A-Z]+\ ) | =+\ backtrace
              | File\ ".*",?\ line\ \d+ | Traceback\ \(most | (?:Current\ t|T)hread\ 0x | Extension\ modules: # Python
              | <no\ Python\ frame> | [~^\s]+$ | [-=]+$ | \+\ Exception\ Group\ | \+[-+\ \d.]+$
            )""",
    re.VERBOSE,
)
_REPORT = re.compile(
    rb"""\s*(?: (?:mpirun|mpiexec|prterun|orterun)\b | (?:Killing|Sending)\ (?:sub)?process\b
              | \[.{,40}\]\ \[[A-Z]+\]\ \[launch\.py: | \[?[EW]\d{3,4}\ \d\d: | .*\bNCCL\ (?:INFO|WARN)
              | [\w./-]+\ FAILED$ | Failures:$ | Root\ Cause | <NO_OTHER_FAILURES> | \[\d+\]:$
              | (?:time|host|rank|exitcode|error_file|traceback)\ *:\  | (?:WARNING|ERROR):torch\.distributed\.elastic
              | terminate\ called | what\(\):\  | Exception\ raised\ from\ | (?:Aborted|Segmentation)\b | Killed$
              | Primary\ job\b | (?:a|from)\ non-zero\ | warnings\.warn | .*Warning:\  | wandb:\ \b
              | .*\bleaked\ .*\ objects
            )""",
    re.VERBOSE,
)
"""Lines of launchers and libraries about the end of a process. They do not show that the process continued."""


@attrs.frozen
class TailLine:
    """A line without its line end, the byte where the line begins, and its kind. Stack traces are left out.

    ``uncaught`` is True for an exception that ended its process according to its traceback.
    """

    offset: int
    line: bytes
    label: bytes
    kind: Literal["error", "ignored error", "report", "text"]
    uncaught: bool = False


@attrs.frozen
class LoggedError:
    """The line of an exception or a fatal message.

    ``ended_rank`` is True if almost no line of the same rank follows it, or if nothing caught the exception.
    """

    offset: int
    line: bytes
    ended_rank: bool

    @property
    def exception(self) -> str:
        """The name of the exception, or "" if the line has no exception or another process caused it."""
        text = _unlabelled(self.line).strip()
        match = _NAME.match(text)
        if not match or _FROM_OTHERS.search(text) or text.startswith(b"Fatal Python error"):
            return ""
        if match[3]:
            return match[3].decode()
        joined = _JOINED.fullmatch(match[2])
        name = joined[1] if joined else match[2]
        is_common = name in (b"Error", b"Exception") or name[:1].islower()
        return (match[0].rstrip(b": ") if is_common else name).decode()


def find_errors(tail: bytes, reports: Callable[[bytes], object] = lambda _line: False) -> list[LoggedError]:
    """Return the errors among the last `RECENT` lines of each rank, in the order of the log.

    Exceptions that did not end a process are left out, and exceptions that caused the next one. ``reports`` is true
    for a line that does not show that a process continued, besides the lines of `_REPORT`.
    """
    if not _WORTH_READING.search(tail):
        return []
    ranks = defaultdict[bytes, list[TailLine]](list)
    for line in read_tail(tail):
        if line.kind == "text" and reports(line.line):
            line = attrs.evolve(line, kind="report")
        ranks[line.label].append(line)
    return sorted((error for lines in ranks.values() for error in _errors_of(lines)), key=lambda error: error.offset)


def first_exception(errors: Sequence[LoggedError], *, ended: bool = False) -> LoggedError | None:
    """Return the first exception that ended a rank. Without one, return the last exception unless ``ended``."""
    own = [error for error in errors if error.exception]
    final = next((error for error in own if error.ended_rank), None)
    return final or (own[-1] if own and not ended else None)


def is_chained(text: bytes) -> bool:
    """Check whether a text connects an exception to one that it caused, or that occurred while it was handled."""
    return _CHAINED.search(text) is not None


def _errors_of(lines: Sequence[TailLine]) -> Iterator[LoggedError]:
    allowed = float(AT_THE_END)
    for line in reversed(lines[-RECENT:]):
        if line.kind == "error":
            yield LoggedError(line.offset, line.line, ended_rank=line.uncaught or allowed >= 0)
            allowed += AT_THE_END
        elif line.kind == "text":
            allowed -= 1
        if allowed < 0:
            allowed = -math.inf  # the rank continued after every earlier error


@attrs.define
class _Rank:
    """State of the stack trace that a rank is printing."""

    code_follows: bool = False
    in_group: bool = False
    frames: bool = False
    uncaught: bool = False
    of_tracker: bool = False
    reported: int = 0
    patience: int = 0
    of_task: bool = False
    last_error: int | None = None


def read_tail(tail: bytes) -> list[TailLine]:
    """Return the lines with text, except stack traces and exceptions of Python's resource tracker."""
    kept: list[TailLine] = []
    ranks = defaultdict[bytes, _Rank](_Rank)
    offset = 0
    for whole in tail.splitlines(keepends=True):
        plain = without_time(without_escapes(whole)[0] if ESCAPE in whole else whole)
        label = label_of(plain)
        _read_line(offset, whole.rstrip(b"\r\n"), label, plain[len(label) :].rstrip(b"\r\n"), ranks[label], kept)
        offset += len(whole)
    return kept


def _read_line(offset: int, line: bytes, label: bytes, text: bytes, rank: _Rank, kept: list[TailLine]) -> None:
    if rank.in_group and (margin := _MARGIN.match(text)):
        text = text[margin.end() :]
    else:
        rank.in_group = _GROUP in text
    is_code = rank.code_follows and text.startswith(b"    ")
    is_trace = _TRACE.match(text) is not None
    rank.code_follows = is_trace
    if is_trace or is_code or not text.strip():
        if b'File "' in text and is_trace:
            rank.uncaught = rank.uncaught or (not rank.frames and text.endswith(_OUTERMOST_FRAMES))
            rank.frames, rank.of_tracker = True, _TRACKER in text
        return
    stripped = text.strip()
    is_error = _ERROR.match(stripped) or (rank.frames and _AFTER_FRAMES.match(text))
    if _CHAINED.match(stripped) and rank.last_error is not None:
        kept[rank.last_error] = attrs.evolve(kept[rank.last_error], kind="ignored error")
    elif not (is_error and rank.of_tracker):
        kind: Literal["error", "ignored error", "report", "text"] = "text"
        if is_error:
            kind = "ignored error" if rank.reported or _WRAPPER.match(stripped) else "error"
            if rank.of_task and rank.frames and rank.last_error is not None:
                task = kept[rank.last_error]
                kept[rank.last_error] = attrs.evolve(task, kind="ignored error")
                rank.uncaught, kind = task.uncaught, task.kind
            rank.last_error = len(kept)
        elif _REPORT.match(stripped):
            kind = "report"
        _expect_reported(rank, stripped, is_error=bool(is_error))
        rank.of_task = bool(is_error) and _OF_TASK.match(stripped) is not None
        kept.append(TailLine(offset, line.strip(), label, kind, uncaught=rank.uncaught))
    rank.frames = rank.uncaught = rank.of_tracker = False


def _expect_reported(rank: _Rank, text: bytes, *, is_error: bool) -> None:
    """Count the exceptions to come that end no process. Several processes may write such reports at the same time."""
    if _REPORTED.search(text):
        rank.reported, rank.patience = rank.reported + 1, AT_THE_END
    elif is_error:
        rank.reported = max(0, rank.reported - 1)
    else:
        rank.patience -= 1
        rank.reported = rank.reported if rank.patience > 0 else 0


def _unlabelled(line: bytes) -> bytes:
    """Return a line without time, rank labels and colours, and without the margin of an exception group."""
    text = without_time(without_escapes(line)[0] if ESCAPE in line else line)
    text = text[len(label_of(text)) :]
    margin = _MARGIN.match(text)
    return text[margin.end() :] if margin else text
