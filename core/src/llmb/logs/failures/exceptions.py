"""Exceptions and fatal messages in a part of a log, of every rank that labels its lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import attrs

from llmb.logs.ansi_escapes import plain_text
from llmb.logs.rank_labels import split_label

SEARCHED_BYTES: Final = 4 << 20
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
           | F\ [\w./-]+:\d+\]\ .*                                                       # a fatal line of XLA
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

_OF_TASK = re.compile(rb"(?:[A-Za-z_]\w*\.)*RayTaskError\(\w+\):|monarch\.(?:\w+\.)*ActorError:")
"""An exception of a task of Ray or of an actor of Monarch. Its message is usually the traceback of its cause."""

_JOINED = re.compile(rb"(\w+?(?:Error|Exception))\1+")
"""The same name several times, because ranks without labels wrote it at the same time."""

_WORTH_READING = re.compile(
    rb"Error|Exception|Interrupt|Exit|Empty|\.error\b|Fatal Python|(?m:^F\d{4})|: F |Traceback \("
)
"""A text without any of these has no error."""

_BEFORE_IGNORED = re.compile(
    rb"(?i)Exception ignored (?:in|while)|Exception in thread |--- Logging error ---|\bimport\b.*: Traceback \(most"
)
"""Lines before exceptions that do not end the process: in a finalizer, in another thread, in a log handler, in the
import of an optional module."""

CHAINED: Final = re.compile(rb"During handling of the above exception|The above exception was the direct cause")
"""A line between an exception and one that it caused, or that occurred while it was handled."""

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
    rb"\bDist\w+Error|ChildFailedError|\bConnection\w*Error|BrokenPipeError|TimeoutError|NCCL(?!_)|\bnccl[A-Z]|[Gg]loo"
    rb"|\b(?:Actor(?:Died|Unavailable)|NodeDied|WorkerCrashed)Error\b|HCCL|\bHccl[A-Z]"  # of Ray; NCCL of Ascend
    rb"|\b(?:UNAVAILABLE|ABORTED|CANCELLED|DEADLINE_EXCEEDED): "  # the status codes of gRPC
    rb"|^(?:[\w.]+\.)?(?:KeyboardInterrupt|SystemExit|SignalException|SIGTERMException|GeneratorExit)\b"
)
"""Errors of a process that lost the connection to another process, never reached it, or received a signal."""

_TRACE = re.compile(
    rb"""\s*(?: frame\ \#\d+: | \#?\d+\ +0x[0-9a-f]+ | @\s+0x[0-9a-f]+ | PC:\ @ | 0x[0-9a-f]+:\     # C++
              | \S*\(\S*\+0x[0-9a-f]+\)\ ?\[0x | \*\*\*\ (?:Check\ failure|SIG[A-Z]+\ ) | =+\ backtrace
              | File\ ".*",?\ line\ \d+ | Traceback\ (?:of\ where\ the\ remote\ call\ failed\ )?\(most # Python, Monarch
              | (?:Current\ t|T)hread\ 0x | Extension\ modules: | <no\ Python\ frame>
              | [~^\s]+$ | [-=]+$ | \+\ Exception\ Group\ | \+[-+\ \d.]+$
            )""",
    re.VERBOSE,
)
_REPORT = re.compile(
    rb"""\s*(?: (?:mpirun|mpiexec|prterun|orterun)\b | (?:Killing|Sending)\ (?:sub)?process\b
              | \[.{,40}\]\ \[[A-Z]+\]\ \[launch\.py: | (?:\[-\])?\[?[EW]\d{3,4}\ \d\d: | .*\bNCCL\ (?:INFO|WARN)
              | [\w./-]+\ FAILED$ | Failures:$ | Root\ Cause | <NO_OTHER_FAILURES> | \[\d+\]:$
              | (?:time|host|rank|exitcode|error_file|traceback)\ *:\  | (?:WARNING|ERROR):torch\.distributed\.elastic
              | terminate\ called | what\(\):\  | Exception\ raised\ from\ | (?:Aborted|Segmentation)\b | Killed$
              | Primary\ job\b | (?:a|from)\ non-zero\ | warnings\.warn | .*Warning:\  | wandb:\ \b
              | .*\bleaked\ .*\ objects
            )""",
    re.VERBOSE,
)
"""Lines of launchers and libraries about the end of a process. They do not show that the process continued."""


@attrs.define
class TailLine:
    """A line without its line end, the byte where the line begins, and its kind. Stack traces are left out.

    An "ignored error" ended no process. A "report" is about the end of a process, by a launcher or a library.
    ``uncaught`` is True for an exception that ended its process according to its traceback. ``ended_rank`` is True for
    an error that nothing caught, or that almost no line of the same rank follows; `find_errors` sets it.
    """

    offset: int
    line: bytes
    label: bytes
    kind: Literal["error", "ignored error", "report", "text"]
    uncaught: bool = False
    ended_rank: bool = False


def exception_in(line: bytes) -> str:
    """Return the name of the exception in a line, or "" if it has none or if another process caused the exception."""
    text = split_label(plain_text(line))[1]
    if margin := _MARGIN.match(text):
        text = text[margin.end() :]
    text = _without_carets(text).strip()
    match = _NAME.match(text)
    if not match or _FROM_OTHERS.search(text) or text.startswith(b"Fatal Python error"):
        return ""
    if match[3]:
        return match[3].decode()
    joined = _JOINED.fullmatch(match[2])
    name = joined[1] if joined else match[2]
    is_common = name in (b"Error", b"Exception") or name[:1].islower()
    return (match[0].rstrip(b": ") if is_common else name).decode()


def _without_carets(text: bytes) -> bytes:
    """Return a line without the carets that other ranks wrote into it, which mark code in their tracebacks."""
    return text.replace(b"^", b"")


def find_errors(tail: bytes, is_report: Callable[[bytes], bool] | None = None) -> list[TailLine]:
    """Return the errors among the last `RECENT` lines of each rank, in the order of the log.

    Exceptions that did not end a process are left out, and exceptions that caused the next one. ``is_report`` is that
    of `read_tail`.
    """
    if not _WORTH_READING.search(tail):
        return []
    ranks = defaultdict[bytes, list[TailLine]](list)
    for line in read_tail(tail, is_report):
        ranks[line.label].append(line)
    return sorted((error for lines in ranks.values() for error in _errors_of(lines)), key=lambda error: error.offset)


def first_exception(errors: Sequence[TailLine], *, ended: bool = False) -> TailLine | None:
    """Return the first exception that ended a rank. Without one, return the last exception unless ``ended``."""
    own = [error for error in errors if exception_in(error.line)]
    final = next((error for error in own if error.ended_rank), None)
    return final or (own[-1] if own and not ended else None)


def _errors_of(lines: Sequence[TailLine]) -> Iterator[TailLine]:
    allowed, continued = AT_THE_END, False  # once too many lines follow, the rank continued after every earlier error
    for line in reversed(lines[-RECENT:]):
        if line.kind == "error":
            line.ended_rank = line.uncaught or not continued
            yield line
            allowed += AT_THE_END
        elif line.kind == "text":
            allowed -= 1
            continued = continued or allowed < 0


@attrs.define
class _Rank:
    """The lines of a rank, as far as they decide what its next line is.

    ``frames`` are the stack frames since the last ordinary line. ``expected`` is the number of announced exceptions
    (`_BEFORE_IGNORED`) that are still to come, within ``patience`` lines. An exception that nothing caught is one of
    them only without a line between. ``task_error`` is the last line if it is an exception of a Ray task.
    """

    in_group: bool = False
    code_follows: bool = False
    frames: list[bytes] = attrs.field(factory=list)
    expected: int = 0
    patience: int = 0
    last_error: TailLine | None = None
    task_error: TailLine | None = None

    def without_margin(self, text: bytes) -> bytes:
        """Return a line without the margin of an exception group."""
        if self.in_group and (margin := _MARGIN.match(text)):
            return text[margin.end() :]
        self.in_group = _GROUP in text
        return text

    def is_trace(self, text: bytes) -> bool:
        """Check whether a line is blank or part of a stack trace, and keep it if it is a frame."""
        is_code = self.code_follows and text.startswith(b"    ")
        self.code_follows = _TRACE.match(text) is not None
        if self.code_follows and b'File "' in text:
            self.frames.append(text)
        return self.code_follows or is_code or not text.strip()

    def read(self, line: TailLine, text: bytes) -> bool:
        """Set the kind of a line by its text. Return False if the line is not worth keeping.

        The line may show that the last error was not the final one.
        """
        frames, self.frames = self.frames, []
        stripped = _without_carets(text).strip()
        if CHAINED.match(stripped) and self.last_error:
            self.last_error.kind = "ignored error"
            return False
        is_error = _ERROR.match(stripped) or (frames and _AFTER_FRAMES.match(text))
        if is_error and frames and _TRACKER in frames[-1]:
            return False
        if is_error:
            line.uncaught = bool(frames) and frames[0].endswith(_OUTERMOST_FRAMES)
            is_expected = self.expected and (not line.uncaught or self.patience == AT_THE_END)
            line.kind = "ignored error" if is_expected or _WRAPPER.match(stripped) else "error"
            if self.task_error and frames:  # the cause of the task's error
                line.kind, line.uncaught = self.task_error.kind, self.task_error.uncaught
                self.task_error.kind = "ignored error"
            self.last_error = line
        elif _REPORT.match(stripped):
            line.kind = "report"
        self._expect_ignored(stripped, is_error=bool(is_error))
        self.task_error = line if is_error and _OF_TASK.match(stripped) else None
        return True

    def _expect_ignored(self, text: bytes, *, is_error: bool) -> None:
        """Count the exceptions to come that end no process. Several processes may announce them at the same time."""
        if _BEFORE_IGNORED.search(text):
            self.expected, self.patience = self.expected + 1, AT_THE_END
        elif is_error:
            self.expected = max(0, self.expected - 1)
        else:
            self.patience -= 1
            self.expected = self.expected if self.patience > 0 else 0


def read_tail(tail: bytes, is_report: Callable[[bytes], bool] | None = None) -> list[TailLine]:
    """Return the lines with text, except stack traces and exceptions of Python's resource tracker.

    ``is_report`` is true for a line that does not show that a process continued, besides the lines of `_REPORT`.
    """
    kept: list[TailLine] = []
    ranks = defaultdict[bytes, _Rank](_Rank)
    offset = 0
    for whole in tail.splitlines(keepends=True):
        label, plain = split_label(plain_text(whole))
        rank = ranks[label]
        text = rank.without_margin(plain.rstrip(b"\r\n"))
        if not rank.is_trace(text):
            line = TailLine(offset, whole.strip(), label, "text")
            if rank.read(line, text):
                kept.append(line)
                if is_report and line.kind == "text" and is_report(line.line):
                    line.kind = "report"
        offset += len(whole)
    return kept
