"""Removal of terminal escape sequences: colours, links, moves of the cursor (ECMA-48, and xterm's OSC)."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

ESCAPE = b"\x1b"

MAX_LINK_BYTES = 4000
"""Bytes of a link, which contains an address. Longer ones, and other sequences over `MAX_SEQUENCE_BYTES`, are text."""

MAX_SEQUENCE_BYTES = 64

_MOVE = re.compile(rb"\x1b\[(?:[\d;]{,%d}[ABEFHf]|[01]?G)" % MAX_SEQUENCE_BYTES)
_SEQUENCE = re.compile(
    rb"""\x1b(?: \[ [0-?]{,%(short)d} [\ -/]{,%(short)d} [@-~]      # CSI
               | \] [^\x07\x1b\r\n]{,%(longest)d} (?: \x07 | \x1b\\ )    # OSC
               | [\ -/]{,%(short)d} [0-Z\\^-~]                      # other sequences, which are short
             )"""
    % {b"short": MAX_SEQUENCE_BYTES, b"longest": MAX_LINK_BYTES},
    re.VERBOSE,
)
_UNFINISHED = re.compile(
    rb"\x1b(?:\[[0-?]{,%d}[ -/]{,%d}|\][^\x07\x1b\r\n]{,%d}\x1b?|[ -/]{,%d})\Z"
    % (MAX_SEQUENCE_BYTES, MAX_SEQUENCE_BYTES, MAX_LINK_BYTES, MAX_SEQUENCE_BYTES)
)


def without_escapes(data: bytes) -> tuple[bytes, bytes]:
    """Return the text without escape sequences, and an unfinished sequence at the end of ``data``.

    A move of the cursor to another line or column ends a line.
    """
    unfinished = _UNFINISHED.search(data, max(0, len(data) - MAX_LINK_BYTES - MAX_SEQUENCE_BYTES))
    end = unfinished.start() if unfinished else len(data)
    return plain_text(data[:end]), data[end:]


def plain_text(data: bytes) -> bytes:
    """Return the text without escape sequences. A sequence that is cut off at its end remains."""
    return _SEQUENCE.sub(b"", _MOVE.sub(b"\r", data)) if ESCAPE in data else data


class PlainText:
    """The text of a part of a log without escape sequences, with the place of each byte in that part."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.text = plain_text(data)

    def place_in_log(self, place: int) -> int:
        """Return the place, in the part of the log, of the byte at ``place`` in the text."""
        starts, removed = self._removed
        index = bisect_right(starts, place)
        return place + removed[index - 1] if index else place

    @cached_property
    def _removed(self) -> tuple[list[int], list[int]]:
        """The places in the text after each sequence, and the number of bytes that were removed until there."""
        starts, removed, total = list[int](), list[int](), 0
        for match in _SEQUENCE.finditer(self._data):
            kept = 1 if _MOVE.match(match[0]) else 0
            starts.append(match.start() - total + kept)
            total += len(match[0]) - kept
            removed.append(total)
        return starts, removed
