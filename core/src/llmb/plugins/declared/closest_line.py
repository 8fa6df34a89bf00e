"""The line of a log that is closest to a line of [log], and the position at which the two differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from llmb.plugins.declared.log_fields import LogFields
from llmb.plugins.declared.log_format import LogFormat
from llmb.plugins.declared.log_lines import LogLine, Piece

WIDTH: Final = 100
"""Characters of a log line that are shown."""


@attrs.frozen(order=True)
class _Agreement:
    """The agreement of a log line: the number of pieces of the line of [log], and where they end in the log line."""

    pieces: int
    similar: int
    negative_number: int
    place: int = attrs.field(order=False)
    text: str = attrs.field(order=False)


def describe_difference(log: LogFormat, lines: Sequence[str]) -> str:
    """Return the closest log line for each line of [log], with the position of the difference; "" if a line matches."""
    texts = [line for line in lines if line.strip()]
    if not texts or any(reader.read(text.encode()) for reader in log.readers for text in texts):
        return ""
    found = [_describe_line(line, lines) for line in log.lines]
    return "\n  ".join([*found, *(_describe_fields(fields, lines) for fields in log.fields)])


def _describe_line(line: LogLine, lines: Sequence[str]) -> str:
    pieces = [piece for part in line.parts for piece in part]
    best = max(_agree(line, pieces, text, number) for number, text in enumerate(lines, 1))
    begin = max(0, best.place - WIDTH // 2)
    shown = best.text[begin : begin + WIDTH]
    return (
        f'"{line.text}" matches no line; the closest is line {-best.negative_number}, which differs at column '
        f"{best.place + 1}: expected {_describe_piece(pieces, best.pieces)}\n"
        f"    {shown}\n    {' ' * (best.place - begin)}^"
    )


def _describe_piece(pieces: Sequence[Piece], index: int) -> str:
    """Return what was expected: a number, a blank or a text."""
    if index == len(pieces):
        return f"no more characters after {{{pieces[-1].name}}}"
    piece = pieces[index]
    if piece.name:
        return f"a {'time of day' if piece.name == 'clock' else 'number'} for {{{piece.name}}}"
    return "a blank" if piece.text == " " else f'"{piece.text}"'


def _agree(line: LogLine, pieces: Sequence[Piece], text: str, number: int) -> _Agreement:
    """Return how many pieces a log line has, one after the other, and where they end."""
    data = text.encode()
    starts = {part[0] for part in line.parts}
    words = sum(not piece.name and piece.text.strip() in text for piece in pieces)
    place, count = 0, 0
    for piece in pieces:
        match = (re.search if piece in starts else re.match)(piece.pattern, data[place:])
        if match is None:
            place += _common_length(piece.text.encode(), data[place:])
            break
        place, count = place + match.end(), count + 1
    return _Agreement(count, words, -number, len(data[:place].decode(errors="replace")), text)


def _common_length(expected: bytes, found: bytes) -> int:
    """Return the length of the beginning that two texts have in common."""
    pairs = enumerate(zip(expected, found, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(expected), len(found)))


def _describe_fields(fields: LogFields, lines: Sequence[str]) -> str:
    where = fields.needle.decode(errors="replace")
    for number, text in enumerate(lines, 1):
        if where in text:
            return f'line {number} contains "{where}", but none of the keys of {", ".join(fields.names)} with a number'
    return f'no line contains "{where}"'
