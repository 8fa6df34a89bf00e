"""The line of a log that is closest to a line of [log], and the position at which the two differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from llmb.plugins.declared.field_patterns import LogFields
from llmb.plugins.declared.line_patterns import NUMBER_ENDS, LogLine, Piece
from llmb.plugins.declared.log_format import LogFormat

WIDTH: Final = 100
"""Characters of a log line that are shown."""


@attrs.frozen(order=True)
class _Agreement:
    """The agreement of a log line: the number of pieces of the line of [log], and what follows them instead."""

    pieces: int
    similar: int
    negative_number: int
    place: int = attrs.field(order=False)
    expected: str = attrs.field(order=False)
    text: str = attrs.field(order=False)


def describe_difference(log: LogFormat, lines: Sequence[str]) -> str:
    """Return the closest log line for each line of [log], with the position of the difference; "" if a line matches."""
    texts = [line for line in lines if line.strip()]
    if not texts or any(reader.read(text.encode()) for reader in log.readers for text in texts):
        return ""
    found = [_describe_line(line, lines) for line in log.lines]
    return "\n  ".join([*found, *(_describe_fields(fields, lines) for fields in log.fields)])


def _describe_line(line: LogLine, lines: Sequence[str]) -> str:
    best = max(_agree(line, text, number) for number, text in enumerate(lines, 1))
    begin = max(0, best.place - WIDTH // 2)
    shown = best.text[begin : begin + WIDTH]
    return (
        f'"{line.text}" matches no line\n'
        f"  the closest is line {-best.negative_number}, which differs at column {best.place + 1}: "
        f"expected {best.expected}\n"
        f"    {shown}\n    {' ' * (best.place - begin)}^"
    )


def _describe_piece(piece: Piece) -> str:
    """Return what was expected: a number, a blank or a text."""
    if piece.name:
        return f"a {'time of day' if piece.name == 'clock' else 'number'} for {{{piece.name}}}"
    return "a blank" if piece.text == " " else f'"{piece.text}"'


def _agree(line: LogLine, text: str, number: int) -> _Agreement:
    """Return how many pieces a log line has, one after the other, and what it has no more."""
    data = text.encode()
    pieces = [(piece, part) for part in line.parts for piece in part]
    words = sum(not piece.name and piece.text.strip() in text for piece, _ in pieces)
    place, count, expected = 0, 0, ""
    for piece, part in pieces:
        is_first = piece is part[0]
        pattern = re.compile(piece.first_pattern if is_first else piece.pattern)
        match = pattern.search(data, place) if is_first else pattern.match(data, place)
        if match is None:
            expected, inside = _describe_piece(piece), data.find(piece.text.encode(), place)
            if is_first and piece.text and inside >= 0:
                place, expected = inside, f"{expected} at the beginning of a word"
            else:
                place += _common_length(piece.text.encode(), data[place:])
            break
        place, count = match.end(), count + 1
        if piece.name and piece is part[-1] and not re.match(NUMBER_ENDS, data[place:]):
            expected = f"no more characters after {{{piece.name}}}"
            break
    return _Agreement(count, words, -number, len(data[:place].decode(errors="replace")), expected, text)


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
