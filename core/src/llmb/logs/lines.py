"""What every parser of training logs needs: lines found fast in bytes that arrive cut anywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import attrs

from llmb.logs.numbering import Numbering
from llmb.logs.search import places_of
from llmb.values.steps import LogParser, Notice, Step

BEFORE = 4 << 10
AFTER = 16 << 10
"""Bytes of a line that are looked at around a needle; so a line of any length costs no more memory than this."""

_LABEL = re.compile(
    rb"""(?:\s*\d{1,6}:[ ]                             # srun --label
        | \[(?:default|rank)?\d+\]:[ ]?                # torchrun
        | \[\d+,\d+\]<std(?:out|err)>:[ ]?             # mpirun --tag-output
        | (?:\d{1,3}\.){3}\d{1,3}:[ ] | localhost:[ ]  # pdsh, an address
        | [A-Za-z][\w.-]*\d:[ ]                        # pdsh, a name with a number
        | (?=\S*[A-Za-z_])[\w.-]{1,12}/\d+[ ]          # nemo-run's role and replica
        )+""",
    re.VERBOSE,
)
"""What tells at the start of a line which rank it is from."""


@attrs.define
class _Log:
    """One source: what it holds of an unfinished line, and its numbering."""

    source: str
    rest: bytes = b""
    last: bytes = b""  # the last line that ended before what is scanned next
    numbering: Numbering = attrs.field(factory=Numbering)
    told_nan: int = -1  # the last attempt for which a NaN was told


class LineParser(LogParser):
    """A `LogParser` to inherit from: a plugin adds only what a line means.

    Set ``needles``, bytes of which a line must contain one to be looked at, and implement `read_line`. Lines end with
    LF, CRLF or CR (a progress bar that is drawn anew); around the needle at most `BEFORE` and `AFTER` bytes of a line
    are kept. However the bytes are cut into blocks, the same steps and notices come out in the same order.

    `llmb.logs.numbering` tells which steps are printed again and where a new run begins, for each source by itself;
    ranks that label their lines (srun, torchrun, mpirun, pdsh) are told apart. ``read_line`` need not care about
    ``Step.attempt``, nor about a loss that is NaN: the first one of a run also gives a notice.
    """

    needles: Sequence[bytes] = ()

    first_step: int | None = None
    """The number that the framework gives to its first step, where that is known: always, or once a step was read."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self.source = ""
        self.label = b""
        self._before: Callable[[], bytes] = bytes

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """What a line that holds a needle says.

        The line comes without its end, and with whatever prefix it has; ``self.source`` names the log that it is from,
        and ``self.label`` is the beginning by which ranks that share a log label their lines.
        """
        raise NotImplementedError

    def line_before(self) -> bytes:
        """The line before the one that is read now, at most its last `BEFORE` bytes; lines without text do not count.

        For records that a log's author broke in two. It costs something only where it is asked for.
        """
        return self._before()

    def read_torn_line(self, line: bytes) -> Iterable[Step | Notice]:
        """What a log's last line says if nothing ended it: it may be whole, or be cut anywhere, within a number too."""
        return self.read_line(line)

    def feed(self, block: bytes, source: str = "") -> list[Step | Notice]:
        """The steps and notices that this block completes."""
        log = self._logs.get(source)
        if log is None:
            log = self._logs[source] = _Log(source)
        found: list[Step | Notice] = []
        begin = 0
        if log.rest:  # only the block's first line is joined with it: the block is not copied
            begin = _line_end(block, 0, len(block)) + 1 or len(block)
            log.rest = self._scan(log.rest + block[:begin], 0, log, found)
        if begin < len(block):
            log.rest = self._scan(block, begin, log, found)
        return found

    def close(self) -> list[Step | Notice]:
        """What the last lines without an end still hold, and steps held back to see what follows."""
        found: list[Step | Notice] = []
        for log in self._logs.values():
            rest, log.rest = log.rest, b""
            self.source = log.source
            if places_of(self.needles, rest):
                self.label, self._before = _label(rest), partial(_last_line, b"", 0, 0, log.last)
                self._take(self.read_torn_line(rest), log, found)
            self._add(log.numbering.close(), log, found)
        return found

    def _scan(self, data: bytes, begin: int, log: _Log, found: list[Step | Notice]) -> bytes:
        """Read the lines that hold a needle, and return what must be kept of the one that is unfinished."""
        self.source = log.source
        first = begin
        for place in places_of(self.needles, data, begin):
            if place < begin:
                continue  # a second needle of the same line
            low = max(begin, place - BEFORE)
            start = _line_start(data, low, place) or low
            end = _line_end(data, place, place + AFTER)
            if end < 0:
                end = place + AFTER
                if end > len(data):
                    log.last = _last_line(data, first, start, log.last)
                    return data[start:]
            line = data[start:end]
            self.label, self._before = _label(line), partial(_last_line, data, first, start, log.last)
            self._take(self.read_line(line), log, found)
            begin = end
        kept = max(begin, len(data) - BEFORE - max(map(len, self.needles), default=0))
        kept = max(kept, _line_start(data, kept, len(data)))
        log.last = _last_line(data, first, kept, log.last)
        return data[kept:]

    def _take(self, items: Iterable[Step | Notice], log: _Log, found: list[Step | Notice]) -> None:
        for item in items:
            if isinstance(item, Step):
                self._add(log.numbering.take(item, self.label), log, found)
            else:
                found.append(item)

    def _add(self, steps: Iterable[Step], log: _Log, found: list[Step | Notice]) -> None:
        for step in steps:
            found.append(step)
            if step.loss != step.loss and log.told_nan < step.attempt:  # NaN alone differs from itself
                log.told_nan = step.attempt
                found.append(Notice(kind="nan", text=f"the loss of step {step.step} is NaN"))


def _last_line(data: bytes, first: int, end: int, otherwise: bytes) -> bytes:
    """The last line with text that ends within data[first:end], which begins with a line; else ``otherwise``."""
    low = max(first, end - BEFORE)
    text = data[low : _line_start(data, low, end)].rstrip(b"\r\n")  # without what is unfinished
    return text[_line_start(text, 0, len(text)) :] if text else otherwise


def _line_start(data: bytes, low: int, high: int) -> int:
    """Where the line begins that goes on at ``high``; 0 where no line ends between ``low`` and there."""
    line_feed = data.rfind(b"\n", low, high)
    return max(line_feed, data.rfind(b"\r", max(low, line_feed), high)) + 1


def _line_end(data: bytes, low: int, high: int) -> int:
    """Where the next line ends, by LF or CR, before ``high``; -1 where none does."""
    line_feed = data.find(b"\n", low, high)
    carriage_return = data.find(b"\r", low, high if line_feed < 0 else line_feed)
    return line_feed if carriage_return < 0 else carriage_return


def _label(line: bytes) -> bytes:
    label = _LABEL.match(line)
    return label[0] if label else b""
