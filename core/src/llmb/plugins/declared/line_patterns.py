"""Lines of [log]: text with a name in braces instead of each number, compiled to patterns of linear cost.

A line is split at ``...`` into parts. The parts are searched one after the other, each behind the one before it. The
text between two numbers has no alternatives, so the earliest match of a part is always the right one, and nothing is
searched again. In a part, blanks and digits are possessive, and numbers have at most 40 digits. The time is therefore
proportional to the length of the log line, for every possible line of [log].
"""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import Final

import attrs

from llmb.values.errors import Fault, SpecError

SHORTEST_NEEDLE: Final = 2
SKIP: Final = "..."

NUMBER: Final = (
    rb"[-+]?+(?:(?>[0-9]{1,3}+(?>(?:,[0-9]{3}){1,12})(?!,?[0-9])|[0-9]{1,40}+)(?>\.[0-9]{0,40}+|)|\.[0-9]{1,40}+)"
    rb"(?:[eE][-+]?+[0-9]{1,4}+|[kKMGBT](?!\w))?|[-+]?+(?i:nan|inf(?>inity|))"
)
"""A number with or without sign, thousands separators, fraction, and exponent or suffix such as K; NaN or infinity.

The suffix belongs to the text after the number if that text begins with the letter, as in ``{time_ms}K``.
"""

CLOCK: Final = rb"(?>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[ T_]|)[0-9]{1,3}+:[0-9]{2}:[0-9]{2}(?>[.,][0-9]{1,9}+|)"
"""A time of day, with or without a date."""

DAY_S: Final = 86400

_SUFFIXES: Final = {b"k": b"e3", b"K": b"e3", b"M": b"e6", b"G": b"e9", b"B": b"e9", b"T": b"e12"}
"""Suffixes of numbers that scripts shorten, as exponents. Nanotron prints no suffix below 1000, so both occur."""

_DATE: Final = re.compile(rb"(\d{4})[-/](\d{2})[-/](\d{2})[ T_]")

NUMBER_BEGINS: Final = rb"(?<![\w.])"
NUMBER_ENDS: Final = rb"(?![\w]|[.,]\d)"
"""The places before and after a number that is not a piece of a longer word."""

_TOKEN: Final = re.compile(
    r"(?P<text>(?:\{\{|\}\}|\.(?!\.\.)|[^{}. \t])+)|\{(?P<name>[^{}]*)\}|(?P<skip>[ \t]*\.\.\.[ \t]*)|[ \t]+|[{}]"
)
"""Text with double braces, a name in braces, ``...`` with the blanks beside it, a blank, or a single brace."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


@attrs.frozen
class Piece:
    """A piece of a line: text, a blank, or a gap with a name."""

    text: str
    name: str = ""

    @property
    def pattern(self) -> bytes:
        """The pattern of the piece inside a part."""
        if self.name:
            return b"(?P<%s>%s)" % (self.name.encode(), CLOCK if self.name == "clock" else NUMBER)
        return rb"[ \t]++" if self.text == " " else re.escape(self.text.encode())

    @property
    def first_pattern(self) -> bytes:
        """The pattern of the piece at the beginning of a part. ``step=`` is no end of ``micro_step=``.

        A digit may come before the word, because a unit follows its number: ``12ms``. The text comes before the check,
        because `re` searches for a text faster.
        """
        if self.name:
            return NUMBER_BEGINS + self.pattern
        is_word = re.match(r"[A-Za-z_]", self.text)
        return b"%s(?<![A-Za-z_]%s)" % (self.pattern, self.pattern) if is_word else self.pattern


@attrs.frozen
class LinePattern:
    """A compiled line of [log]. ``parts`` are separated by ``...``; ``needle`` is a text that the log line contains."""

    text: str
    parts: tuple[tuple[Piece, ...], ...]
    names: tuple[str, ...]
    patterns: tuple[re.Pattern[bytes], ...]
    needle: bytes

    def read(self, line: bytes, *, torn: bool = False) -> dict[str, bytes] | None:
        """Return the text of each number in a log line, or None if the line does not match.

        A number at the end of a ``torn`` line may lack digits, and is left out.
        """
        found: dict[str, bytes] = {}
        place = 0
        for pattern in self.patterns:
            match = pattern.search(line, place)
            if match is None:
                return None
            found.update(match.groupdict())
            place = match.end()
            if torn and place == len(line) and match.lastgroup and match.end(match.lastgroup) == place:
                del found[match.lastgroup]
        return found


def compile_line(text: str, key: str) -> LinePattern:
    """Return the compiled line. Raise SpecError with its error, at ``key``."""
    pieces = groupby(_pieces(text, key), key=lambda piece: piece.text == SKIP)
    parts = tuple(tuple(part) for is_skip, part in pieces if not is_skip)
    names = tuple(piece.name for part in parts for piece in part if piece.name)
    if errors := [*_check_names(names, key), *_check_gaps(parts, key)]:
        raise SpecError(*errors)
    words = [word for part in parts for piece in part if not piece.name for word in piece.text.split()]
    needle = max(words, key=len, default="")
    if len(needle) < SHORTEST_NEEDLE:
        message = f"no text of {SHORTEST_NEEDLE} characters or more, by which llmb finds the line"
        raise SpecError(Fault(message=message, key=key, expected='a line such as "iter {step}: loss {loss}"'))
    return LinePattern(text, parts, names, tuple(map(_compile, parts)), needle.encode())


def _pieces(text: str, key: str) -> Iterator[Piece]:
    """Yield the pieces of a line, and ``...`` as a piece. A blank beside ``...`` is left out: anything may be there."""
    for match in _TOKEN.finditer(text.strip()):
        word, name = match[0], match["name"]
        if name is not None and not _NAME.fullmatch(name):
            expected = "small letters, digits and _, or {{ for a brace"
            raise SpecError(Fault(message=f"invalid name {{{name}}}", key=key, expected=expected))
        if word in ("{", "}"):
            raise SpecError(Fault(message=f"a single {word}", key=key, expected=f"{word * 2} for a literal brace"))
        if name:
            yield Piece("", name)
        elif match["skip"]:
            yield Piece(SKIP)
        else:
            yield Piece(" " if word.isspace() else word.replace("{{", "{").replace("}}", "}"))


def _compile(part: tuple[Piece, ...]) -> re.Pattern[bytes]:
    """Compile a part. A number at an end of the part is a complete one, not a piece of a longer word."""
    behind = NUMBER_ENDS if part[-1].name else b""
    return re.compile(part[0].first_pattern + b"".join(piece.pattern for piece in part[1:]) + behind)


def _check_names(names: Sequence[str], key: str) -> Iterator[Fault]:
    if not names:
        yield Fault(message="no number is named", key=key, expected='a line such as "iter {step}: loss {loss}"')
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Fault(message=f"{{{name}}} occurs more than once", key=key, expected="a different name for each number")


def _check_gaps(parts: tuple[tuple[Piece, ...], ...], key: str) -> Iterator[Fault]:
    """Yield an error for each gap without text before it: llmb would not know where its number begins."""
    for number, part in enumerate(parts):
        for before, piece in zip((None, *part), part, strict=False):
            if not piece.name:
                continue
            if before is not None and before.name:
                message = f"{{{before.name}}} and {{{piece.name}}} touch"
                yield Fault(message=message, key=key, expected="text or a blank between two numbers")
            elif before is None and not (piece.name == "clock" and number == 0):
                message = f"no text before {{{piece.name}}}"
                yield Fault(message=message, key=key, expected="text copied from the log before each number")


def as_number(name: str, text: bytes) -> float:
    """Return the value of a number in a log, also of ``1.21K``.

    A time of day is in seconds, with a date since the year 1.
    """
    if name != "clock":
        if exponent := _SUFFIXES.get(text[-1:]):
            text = text[:-1] + exponent
        return float(text.replace(b",", b""))
    day = _DATE.match(text)
    hours, minutes, seconds = text[day.end() if day else 0 :].replace(b",", b".").split(b":")
    try:
        days = date(*map(int, day.groups())).toordinal() if day else 0
    except ValueError:
        return math.nan
    return days * DAY_S + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
