"""Text that a terminal shows as it is. Specs, logs, hosts and records may contain what controls a terminal."""

import re

_SEQUENCE = re.compile(
    r"""(?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]               # CSI: colours, moves of the cursor
      | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )              # OSC, DCS and others: titles, links, the clipboard
        [^\x07\x1b\x9c\r\n]* (?: \x07 | \x1b\\ | \x9c )
      | \x1b [ -/]* [0-~]                                     # other sequences
     """,
    re.VERBOSE,
)
_LINE_END = re.compile("\r\n?")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 except tab and newline, C1, the controls of bidirectional text, and the separators of lines and paragraphs."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of characters, which no encoding can write: bytes of a file name that is not UTF-8."""


def printable_text(text: str) -> str:
    """Return text without anything that a terminal would interpret, except tabs and line ends."""
    if text.isprintable():
        return text
    text = _CONTROL.sub("", _SEQUENCE.sub("", _LINE_END.sub("\n", text)))
    return SURROGATE.sub("\ufffd", text)


def printable_line(text: str) -> str:
    """Return text as `printable_text` does, in one line."""
    return " ".join(printable_text(text).splitlines())
