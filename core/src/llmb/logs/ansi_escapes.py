"""Removal of terminal escape sequences: colours, links, moves of the cursor (ECMA-48, and xterm's OSC)."""

from __future__ import annotations

import re

ESCAPE = b"\x1b"

LONGEST = 4 << 10
"""Most bytes of a sequence. A link contains an address."""

_MOVE = re.compile(rb"\x1b\[(?:[\d;]*[ABEFHf]|[01]?G)")
_SEQUENCE = re.compile(
    rb"""\x1b(?: \[ [0-?]* [\ -/]* [@-~]                    # CSI
               | \] [^\x07\x1b\r\n]* (?: \x07 | \x1b\\ )    # OSC
               | [\ -/]* [0-Z\\^-~]                         # other sequences, which are short
             )""",
    re.VERBOSE,
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\r\n]*\x1b?|[ -/]*)\Z")


def without_escapes(data: bytes) -> tuple[bytes, bytes]:
    """Return the text without escape sequences, and an unfinished sequence at the end of ``data``.

    A move of the cursor to another line or column ends a line.
    """
    unfinished = _UNFINISHED.search(data, max(0, len(data) - LONGEST))
    end = unfinished.start() if unfinished else len(data)
    return _SEQUENCE.sub(b"", _MOVE.sub(b"\r", data[:end])), data[end:]
