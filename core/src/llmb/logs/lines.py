"""What every parser of training logs needs: lines found fast in bytes that arrive cut anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from llmb.logs.numbering import Numbering
from llmb.values.steps import Notice, Step

LONGEST_LINE = 64 << 10
"""Bytes of a line that are looked at, its last ones; so a line without an end costs no memory."""

_LABEL = re.compile(rb"\s*(?:(\d{1,7}): |\[default(\d+)\]:|((?:\d{1,3}\.){3}\d{1,3}|localhost): )")
"""Which rank a line is from: srun's label, torchrun's, or pdsh's host."""


class LineParser:
    """A `LogParser` to inherit from: a plugin adds only what a line means.

    Set ``needles``, one of which a line must contain to be looked at, and implement `read_line`. Lines end with LF,
    CRLF or CR (a progress bar drawn anew). Each source, and each rank that labels its lines, has a tail and a
    numbering of its own; `llmb.logs.numbering` tells when steps are printed again and when a new run begins.
    Whatever way the bytes are cut, the same steps and notices come out in the same order.
    """

    needles: Sequence[bytes] = ()

    def __init__(self) -> None:
        self._tails: dict[str, bytes] = {}
        self._numberings: dict[tuple[str, bytes], Numbering] = {}
        self._needle = re.compile(b"|".join(map(re.escape, self.needles)))

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        """What a line that holds a needle says; it comes without its end, with whatever prefix it has."""
        raise NotImplementedError

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        """The steps and notices that this block completes."""
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        tail = self._tails.get(source, b"")
        if not end:
            self._tails[source] = (tail + block)[-LONGEST_LINE:]
            return ()
        self._tails[source] = block[max(end, len(block) - LONGEST_LINE) :]
        data = tail + block[:end] if tail else block
        return list(self._read(data, len(tail) + end, source))

    def close(self) -> Sequence[Step | Notice]:
        """What the last lines without an end still hold, and steps held back to see what followed."""
        found: list[Step | Notice] = []
        for source, tail in self._tails.items():
            found += self._read(tail + b"\n", len(tail) + 1, source)
        self._tails.clear()
        for numbering in self._numberings.values():
            found += numbering.close()
        return found

    def _read(self, data: bytes, end: int, source: str) -> Iterator[Step | Notice]:
        position = 0
        search = self._needle.search
        while match := search(data, position, end):
            start = max(data.rfind(b"\n", position, match.start()), position - 1) + 1
            start = max(start, data.rfind(b"\r", start, match.start()) + 1)
            stop = data.find(b"\n", match.end(), end)
            stop = end if stop < 0 else stop
            carriage = data.find(b"\r", match.end(), stop)
            stop = stop if carriage < 0 else carriage
            position = stop + 1
            if match.start() >= stop - LONGEST_LINE:
                yield from self._numbered(data[max(start, stop - LONGEST_LINE) : stop], source)

    def _numbered(self, line: bytes, source: str) -> Iterator[Step | Notice]:
        for item in self.read_line(line):
            if isinstance(item, Step):
                yield from self._numbering(line, source).take(item)
            else:
                yield item

    def _numbering(self, line: bytes, source: str) -> Numbering:
        label = _LABEL.match(line)
        key = (source, label[0].strip() if label else b"")
        if key not in self._numberings:
            self._numberings[key] = Numbering()
        return self._numberings[key]
