"""What every parser of training logs needs: lines found fast in bytes that arrive cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import attrs

from llmb.logs.escapes import ESCAPE, without_escapes
from llmb.logs.found import Found, UnreadStep
from llmb.logs.numbering import Numbering
from llmb.logs.rank_labels import LABEL, label_of
from llmb.logs.search import search_for
from llmb.values.steps import LogParser, Notice, Step

BEFORE = 4 << 10
AFTER = 16 << 10
"""Bytes of a line that are looked at around a needle; so a line of any length costs no more memory than this."""


@attrs.define
class _Log:
    """One source: what it holds of an unfinished line, and its numbering."""

    source: str
    rest: bytes = b""
    escape: bytes = b""  # an unfinished escape sequence
    last: bytes = b""  # the last line that ended before what is scanned next
    numbering: Numbering = attrs.field(factory=Numbering)
    told_nan: int = -1  # the last attempt for which a NaN was told
    waiting: list[Notice] = attrs.field(factory=list)  # said after a step that is held back: perhaps of a new run


class LineParser(LogParser):
    """A `LogParser` to inherit from: a plugin adds only what a line means.

    Set ``needles``, bytes of which a line must contain one to be looked at, and implement `read_line`. Lines end with
    LF, CRLF or CR (a progress bar that is drawn anew); around the needle at most `BEFORE` and `AFTER` bytes of a line
    are kept. Colours are taken out before. However the bytes are cut into blocks, the same steps and notices come out,
    in the same order.

    `llmb.logs.numbering` tells which steps are printed again and where a new run begins, for each source by itself;
    ranks whose lines a launcher labels are told apart (`llmb.logs.rank_labels`). ``read_line`` need not care about
    ``Step.attempt``, nor about a loss that is NaN: the first one of a run also gives a notice.

    What is the parser's own begins with two underscores, so that no name of a plugin's can meet it.
    """

    needles: Sequence[bytes] = ()

    nothing_new: Final = (-1, b"")
    """What `glance` says of a line that says nothing that was not said before."""

    def __init__(self) -> None:
        self.__logs: dict[str, _Log] = {}
        self.source = ""
        self.label = b""
        self.__before: Callable[[], bytes] = bytes
        self.__fault: Exception | None = None

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """What a line that holds a needle says; nothing, where a number in it cannot be read.

        Logs are torn and glued together by processes that write at once. What is raised here ends the reading of the
        log, and is told as a fault of the plugin.

        The line comes without its end, and with whatever prefix it has; ``self.source`` names the log that it is from,
        and ``self.label`` is the beginning by which ranks that share a log label their lines.
        """
        raise NotImplementedError

    def line_before(self) -> bytes:
        """The line before the one that is read now, at most its last `BEFORE` bytes; lines without text do not count.

        For records that a log's author broke in two. It costs something only where it is asked for.
        """
        return self.__before()

    def read_torn_line(self, line: bytes) -> Iterable[Step | Notice]:
        """What a log's last line says if nothing ended it: it may be whole, or be cut anywhere, within a number too."""
        return self.read_line(line)

    def glance(self, line: bytes) -> tuple[int, bytes] | None:
        """The number of a usual line's one step, and the text of which `read_step` makes it; null for any other line.

        What costs time in a step is its figures, and many are never asked for: of steps printed again, of runs that
        began anew, of steps outside the window. So a parser of long logs tells here what it sees at a glance, of a line
        that says nothing but one step, in which nothing is NaN; `read_line` is not called for it. A line that is to be
        passed over (a bar that is drawn again) is ``self.nothing_new``.
        """
        return None

    def read_step(self, text: bytes) -> Step:
        """The step of a text that `glance` returned: nothing but the text decides, and it may never be called."""
        raise NotImplementedError

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """The steps and notices that this block completes.

        What `read_line` raises is raised by the next call: all that was found before that line is returned first.
        """
        self.__raise_fault()
        log = self.__logs.get(source)
        if log is None:
            log = self.__logs[source] = _Log(source)
        if log.escape or ESCAPE in block:
            block, log.escape = without_escapes(log.escape + block)
        found = Found()
        try:
            self.__feed(block, log, found)
        except Exception as error:  # noqa: BLE001  # raised later
            self.__fault = error
        return found

    def __raise_fault(self) -> None:
        if self.__fault is not None:
            raise self.__fault

    def __feed(self, block: bytes, log: _Log, found: Found) -> None:
        begin = 0
        if log.rest:  # only the block's first line is joined with it: the block is not copied
            begin = _line_end(block, 0, len(block)) + 1 or len(block)
            log.rest = self.__scan(log.rest + block[:begin], 0, log, found)
        if begin < len(block):
            log.rest = self.__scan(block, begin, log, found)

    def close(self) -> Sequence[Step | Notice]:
        """What the last lines without an end still hold, and steps held back to see what follows."""
        self.__raise_fault()
        found = Found()
        for log in self.__logs.values():
            rest, log.rest = log.rest, b""
            self.source = log.source
            if search_for(tuple(self.needles)).find_all(rest):
                self.label, self.__before = label_of(rest), partial(_last_line, b"", 0, 0, log.last)
                self.__take(self.read_torn_line, rest, log, found)
            self.__add(log.numbering.close(), log, found)
            self.__tell_waiting(log, found)
        return found

    def __scan(self, data: bytes, begin: int, log: _Log, found: Found) -> bytes:
        """Read the lines that hold a needle, and return what must be kept of the one that is unfinished."""
        self.source = log.source
        first, rows = begin, list[tuple[int, bytes]]()
        glance, nothing_new, rises, match = self.glance, self.nothing_new, log.numbering.rises, LABEL.match
        for place, following in pairwise([*search_for(tuple(self.needles)).find_all(data, begin), len(data)]):
            if place < begin:
                continue  # a second needle of the same line
            line, start, end = _line_around(data, place, begin)
            if end > len(data):
                begin = start
                break
            begin = end
            labelled = match(line)
            self.label = label = labelled[0] if labelled else b""
            seen = glance(line) if following >= end else None
            if seen is nothing_new:
                continue
            if seen is not None and rises(seen[0], label):
                rows.append(seen)
                continue
            rows = self.__keep(rows, log, found)
            if seen is not None:
                self.__add(log.numbering.take(UnreadStep(*seen), label), log, found)
                self.__tell_waiting(log, found)
            else:
                self.__before = partial(_last_line, data, first, start, log.last)
                self.__take(self.read_line, line, log, found)
        else:
            begin = max(begin, len(data) - BEFORE - max(map(len, self.needles), default=0))
            begin = max(begin, _line_start(data, begin, len(data)))
        self.__keep(rows, log, found)
        log.last = _last_line(data, first, begin, log.last)
        return data[begin:]

    def __keep(self, rows: list[tuple[int, bytes]], log: _Log, found: Found) -> list[tuple[int, bytes]]:
        """Add the steps that were only glanced at; returns where to put the next ones."""
        if rows:
            found.append_unread(log.numbering.attempt, self.read_step, rows)
        return []

    def __take(self, read: Callable[[bytes], Iterable[Step | Notice]], line: bytes, log: _Log, found: Found) -> None:
        try:
            for item in read(line):
                if isinstance(item, Step):
                    self.__add(log.numbering.take(item, self.label), log, found)
                else:
                    log.waiting.append(item)
                self.__tell_waiting(log, found)
        except Exception as error:
            note_line(error, line)
            raise

    def __tell_waiting(self, log: _Log, found: Found) -> None:
        """Add the notices once it is known which run they are of."""
        if log.waiting and not log.numbering.undecided:
            waiting, log.waiting = log.waiting, []
            for notice in waiting:
                found.append(attrs.evolve(notice, attempt=log.numbering.attempt) if log.numbering.begun else notice)

    def __add(self, steps: Iterable[Step | UnreadStep], log: _Log, found: Found) -> None:
        for step in steps:
            if isinstance(step, UnreadStep):
                found.append_unread(step.attempt, self.read_step, [(step.step, step.text)])
                continue
            found.append(step)
            if step.loss != step.loss and log.told_nan < step.attempt:  # NaN alone differs from itself
                log.told_nan = step.attempt
                text = f"the loss of step {step.step} is NaN"
                found.append(Notice(kind="nan", text=text, attempt=step.attempt))


def note_line(error: Exception, line: bytes) -> None:
    """Note on what a parser raised the line that it was reading."""
    error.add_note(f"in the line {line[:200].decode(errors='replace')!r}")


def _last_line(data: bytes, first: int, end: int, otherwise: bytes) -> bytes:
    """The last line with text that ends within data[first:end], which begins with a line; else ``otherwise``."""
    low = max(first, end - BEFORE)
    text = data[low : _line_start(data, low, end)].rstrip(b"\r\n")  # without what is unfinished
    return text[_line_start(text, 0, len(text)) :] if text else otherwise


def _line_around(data: bytes, place: int, begin: int) -> tuple[bytes, int, int]:
    """The line that holds a place, or what is looked at of it, and where it begins (not before ``begin``) and ends.

    The end is beyond that of the data where the line is unfinished.
    """
    low = place - BEFORE if place - BEFORE > begin else begin
    start = data.rfind(b"\n", low, place) + 1 or low
    end = data.find(b"\n", place, place + AFTER)
    if end < 0:
        end = place + AFTER
    line = data[start:end]
    if b"\r" in line:
        start = data.rfind(b"\r", start, place) + 1 or start
        carriage_return = data.find(b"\r", place, end)
        if carriage_return >= 0:
            end = carriage_return
        line = data[start:end]
    return line, start, end


def _line_start(data: bytes, low: int, high: int) -> int:
    """Where the line begins that goes on at ``high``; 0 where no line ends between ``low`` and there."""
    line_feed = data.rfind(b"\n", low, high)
    return max(line_feed, data.rfind(b"\r", max(low, line_feed), high)) + 1


def _line_end(data: bytes, low: int, high: int) -> int:
    """Where the next line ends, by LF or CR, before ``high``; -1 where none does."""
    line_feed = data.find(b"\n", low, high)
    carriage_return = data.find(b"\r", low, high if line_feed < 0 else line_feed)
    return line_feed if carriage_return < 0 else carriage_return
