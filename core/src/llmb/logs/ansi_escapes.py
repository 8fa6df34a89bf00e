"""Removal of terminal escape sequences: colours, links, moves of the cursor (ECMA-48, and xterm's OSC)."""

from __future__ import annotations

import re

ESCAPE = b"\x1b"

LONGEST = 4000
"""Most bytes of a link, which contains an address. Longer ones, and other sequences over `SHORT` bytes, are text."""

SHORT = 64

_MOVE = re.compile(rb"\x1b\[(?:[\d;]{,%d}[ABEFHf]|[01]?G)" % SHORT)
_SEQUENCE = re.compile(
    rb"""\x1b(?: \[ [0-?]{,%(short)d} [\ -/]{,%(short)d} [@-~]      # CSI
               | \] [^\x07\x1b\r\n]{,%(longest)d} (?: \x07 | \x1b\\ )    # OSC
               | [\ -/]{,%(short)d} [0-Z\\^-~]                      # other sequences, which are short
             )"""
    % {b"short": SHORT, b"longest": LONGEST},
    re.VERBOSE,
)
_UNFINISHED = re.compile(
    rb"\x1b(?:\[[0-?]{,%d}[ -/]{,%d}|\][^\x07\x1b\r\n]{,%d}\x1b?|[ -/]{,%d})\Z" % (SHORT, SHORT, LONGEST, SHORT)
)


def without_escapes(data: bytes) -> tuple[bytes, bytes]:
    """Return the text without escape sequences, and an unfinished sequence at the end of ``data``.

    A move of the cursor to another line or column ends a line.
    """
    unfinished = _UNFINISHED.search(data, max(0, len(data) - LONGEST - SHORT))
    end = unfinished.start() if unfinished else len(data)
    return _SEQUENCE.sub(b"", _MOVE.sub(b"\r", data[:end])), data[end:]
