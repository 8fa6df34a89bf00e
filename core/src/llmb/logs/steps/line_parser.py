"""`LineParser`, the base class of log parsers: it finds lines quickly in bytes that may be cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from llmb.logs.ansi_escapes import ESCAPE, without_escapes
from llmb.logs.processes import rank_of_label
from llmb.logs.rank_labels import rank_label
from llmb.logs.search_many_texts import search_for
from llmb.logs.steps.restarts import Numbering
from llmb.logs.time_limit import check_time
from llmb.values.steps import LogParser, Notice, Step

BYTES_BEFORE = 4 << 10
BYTES_AFTER = 16 << 10
"""Bytes of a line that are read before and after a needle, so that memory does not depend on the length of a line."""

FIRST_SEARCH_BYTES = 512
"""Bytes of the first search for other needles."""


@attrs.define
class _Log:
    """State of one source: its unfinished line and its numbering."""

    source: str
    rest: bytes = b""
    escape: bytes = b""  # an unfinished escape sequence
    before: bytes = b""  # the text before ``rest``
    numbering: Numbering = attrs.field(factory=Numbering)
    nan_attempt: int = -1  # the last attempt with a notice of a NaN loss
    waiting: list[Notice] = attrs.field(factory=list)  # until the attempt of the step before them is certain

    def keep(self, data: bytes, first: int, begin: int) -> None:
        """Keep data from ``begin`` on for the next block, and the text before that. This text begins at ``first``."""
        self.before = (self.before + data[max(first, begin - BYTES_BEFORE) : begin])[-BYTES_BEFORE:]
        self.rest = data[begin:]


class LineParser(LogParser):
    """Base class of a `LogParser` for which a plugin implements only the meaning of a line.

    Set ``needles`` and implement `read_line`, which receives each line that contains a needle. Lines end with LF, CRLF
    or CR (a progress bar). Of a long line, at most `BYTES_BEFORE` bytes before the needle and `BYTES_AFTER` bytes after
    it are read. Terminal escapes are removed first. The steps and notices are the same however the bytes are cut into
    blocks.

    `llmb.logs.steps.restarts` distinguishes steps that are printed again from the steps of a new run, for each source
    and for each rank that labels its lines (`llmb.logs.rank_labels`) or that `read_line` sets as ``Step.rank``.
    `read_line` may ignore ``Step.attempt``. It may also ignore losses that are NaN, because the first one of a run adds
    a notice.

    Private names begin with two underscores, so that subclasses can use any other name.
    """

    needles: Sequence[bytes] = ()
    """Texts of which a line must contain at least one. A parser may change them after any line."""

    def __init__(self) -> None:
        self.__logs: dict[str, _Log] = {}
        self.__before: tuple[bytes, bytes, int, int] = (b"", b"", 0, 0)
        self.__error: Exception | None = None
        self.source = ""
        """The log of the current line."""
        self.label = b""
        """The rank labels at the beginning of the current line, without the times around them, or nothing."""

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Return the steps and notices of a line that contains a needle, in the order of the line.

        Processes that write at the same time tear lines and join them, so skip numbers that cannot be read. An
        exception ends the reading of the log and is reported as an error of the plugin. The line has no line end.
        """
        raise NotImplementedError

    def read_torn_line(self, line: bytes) -> Iterable[Step | Notice]:
        """Return the steps and notices of a log's last line without a line end, which may be cut within a number."""
        return self.read_line(line)

    def text_before(self) -> bytes:
        """Return the last `BYTES_BEFORE` bytes before the current line, for records that span several lines."""
        earlier, data, first, start = self.__before
        return (earlier + data[max(first, start - BYTES_BEFORE) : start])[-BYTES_BEFORE:]

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """Return the steps and notices that this block completes.

        If `read_line` raises an exception, this call returns the steps before that line, and the next call raises it.
        """
        self.__raise_error()
        log = self.__logs.get(source)
        if log is None:
            log = self.__logs[source] = _Log(source)
        if log.escape or ESCAPE in block:
            block, log.escape = without_escapes(log.escape + block)
        block = block.replace(b"\r", b"\n")
        found: list[Step | Notice] = []
        try:
            begin = 0
            if log.rest:  # join it with the first line only, because copying blocks takes longer than the search
                begin = block.find(b"\n") + 1 or len(block)
                self.__read_lines(log.rest + block[:begin], 0, log, found)
            if begin < len(block):
                self.__read_lines(block, begin, log, found)
        except Exception as error:  # noqa: BLE001  # the next call raises it
            self.__error = error
        return found

    def close(self) -> Sequence[Step | Notice]:
        """Return the steps and notices of unfinished last lines, and steps that were waiting for the next one."""
        self.__raise_error()
        found: list[Step | Notice] = []
        for log in self.__logs.values():
            rest, log.rest = log.rest, b""
            self.source = log.source
            if search_for(tuple(self.needles)).find_all(rest):
                self.__before = log.before, b"", 0, 0
                self.__read(self.read_torn_line, rest, log, found)
            self.__add(log.numbering.close(), log, found)
            self.__add_waiting(log, found)
        return found

    def __raise_error(self) -> None:
        if self.__error is not None:
            raise self.__error

    def __read_lines(self, data: bytes, begin: int, log: _Log, found: list[Step | Notice]) -> None:
        """Read the lines with a needle in data[begin:], and keep the part of the last line that is needed later."""
        self.source = log.source
        first = begin
        for place in self.__needle_places(data, begin):
            if place < begin:
                continue  # the line was read already
            start, end = _line_around(data, place, begin)
            if end < 0:
                log.keep(data, first, start)
                return
            self.__before = log.before, data, first, start
            self.__read(self.read_line, data[start:end], log, found)
            begin = end
        begin = max(begin, len(data) - BYTES_BEFORE - max(map(len, self.needles), default=0))
        log.keep(data, first, max(begin, data.rfind(b"\n", begin) + 1))

    def __needle_places(self, data: bytes, begin: int) -> Iterator[int]:
        """Yield where needles begin in data[begin:], some of them twice. After each, the parser may set other needles.

        A parser that does so may do it again soon, so the next search is short and then doubles its length.
        """
        length = len(data)
        while begin < len(data):
            needles = self.needles
            longest = max(map(len, needles), default=0)
            places = search_for(tuple(needles)).find_all(data, begin, begin + length + longest)
            begin, length = begin + length, 2 * length
            for place in places:
                yield place
                if self.needles != needles:
                    begin, length = place + 1, FIRST_SEARCH_BYTES
                    break

    def __read(
        self, read: Callable[[bytes], Iterable[Step | Notice]], line: bytes, log: _Log, found: list[Step | Notice]
    ) -> None:
        self.label = rank_label(line)
        try:
            for item in read(line):
                if isinstance(item, Step):
                    item.check()
                    printed_by = self.label if item.rank is None else self.label + b"%d" % item.rank
                    if self.label and (rank := rank_of_label(self.label)) is not None:
                        item.rank = rank
                    self.__add(log.numbering.take(item, printed_by), log, found)
                else:
                    log.waiting.append(_as_notice(item))
                if log.waiting and not log.numbering.undecided:
                    self.__add_waiting(log, found)
            check_time()
        except Exception as error:
            note_line(error, line)
            raise

    def __add(self, steps: Iterable[Step], log: _Log, found: list[Step | Notice]) -> None:
        for step in steps:
            found.append(step)
            if step.loss != step.loss and log.nan_attempt < step.attempt:  # only NaN differs from itself
                log.nan_attempt = step.attempt
                found.append(Notice(kind="nan", text=f"the loss of step {step.step} is NaN", attempt=step.attempt))

    def __add_waiting(self, log: _Log, found: list[Step | Notice]) -> None:
        waiting, log.waiting = log.waiting, []
        attempt = log.numbering.attempt if log.numbering.begun else None
        found += waiting if attempt is None else [attrs.evolve(notice, attempt=attempt) for notice in waiting]


def _line_around(data: bytes, place: int, begin: int) -> tuple[int, int]:
    """Return where the line around a place begins and ends. The end is -1 if the line is unfinished.

    The part of the line before ``begin`` and parts of a long line do not count.
    """
    low = max(begin, place - BYTES_BEFORE)
    start = data.rfind(b"\n", low, place) + 1 or low
    end = data.find(b"\n", place, place + BYTES_AFTER)
    if end < 0 and place + BYTES_AFTER <= len(data):
        end = place + BYTES_AFTER
    return start, end


def _as_notice(item: object) -> Notice:
    """Return the item. Raise TypeError if it is no notice."""
    if isinstance(item, Notice):
        return item
    raise TypeError(f"{item!r} is neither a Step nor a Notice")


def note_line(error: Exception, line: bytes) -> None:
    """Add to an exception the line that was being read."""
    error.add_note(f"in the line {line[:200].decode(errors='replace')!r}")
