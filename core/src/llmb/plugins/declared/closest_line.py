"""The line of a log that is closest to a line of [log], and the position at which the two differ."""

import re
from collections.abc import Sequence
from typing import Final

import attrs

from llmb.plugins.declared.field_patterns import FieldPatterns
from llmb.plugins.declared.line_patterns import NUMBER_ENDS, LinePattern, Piece
from llmb.plugins.declared.log_format import LogFormat

WIDTH: Final = 100
"""Characters of a log line that are shown."""


@attrs.frozen
class _Difference:
    """The place at which a log line differs from a line of [log].

    ``agreeing`` is the number of pieces before that place, ``similar`` that of texts anywhere in the log line.
    """

    agreeing: int
    similar: int
    place: int
    expected: str


def describe_difference(log: LogFormat, lines: Sequence[str]) -> str:
    """Return the closest log line for each line of [log], with the position of the difference; "" if a line matches."""
    texts = [line for line in lines if line.strip()]
    if not texts or any(reader.read(text.encode()) for reader in log.readers for text in texts):
        return ""
    found = [_describe_line(line, lines) for line in log.lines]
    return "\n  ".join([*found, *(_describe_fields(fields, lines) for fields in log.fields)])


def _describe_line(line: LinePattern, lines: Sequence[str]) -> str:
    found = [_compare(line, text) for text in lines]
    best = max(found, key=lambda each: (each.agreeing, each.similar))
    number = found.index(best)
    begin = max(0, best.place - WIDTH // 2)
    shown = lines[number][begin : begin + WIDTH]
    return (
        f'"{line.text}" matches no line\n'
        f"  the closest is line {number + 1}, which differs at column {best.place + 1}: "
        f"expected {best.expected}\n"
        f"    {shown}\n    {' ' * (best.place - begin)}^"
    )


def _describe_piece(piece: Piece) -> str:
    """Return what was expected: a number, a blank or a text."""
    if piece.name:
        return f"a {'time of day' if piece.name == 'clock' else 'number'} for {{{piece.name}}}"
    return "a blank" if piece.text == " " else f'"{piece.text}"'


def _compare(line: LinePattern, text: str) -> _Difference:
    """Return the difference between a log line and a line of [log]."""
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
    return _Difference(count, words, len(data[:place].decode(errors="replace")), expected)


def _common_length(expected: bytes, found: bytes) -> int:
    """Return the length of the beginning that two texts have in common."""
    pairs = enumerate(zip(expected, found, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(expected), len(found)))


def _describe_fields(fields: FieldPatterns, lines: Sequence[str]) -> str:
    where = fields.needle.decode(errors="replace")
    for number, text in enumerate(lines, 1):
        if where in text:
            return f'line {number} contains "{where}", but none of the keys of {", ".join(fields.names)} with a number'
    return f'no line contains "{where}"'
