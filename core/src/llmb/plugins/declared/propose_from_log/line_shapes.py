"""The shape of the step lines in a log: the line whose numbers change from step to step."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Final

import attrs

from llmb.plugins.declared.line_patterns import CLOCK, NUMBER, as_number
from llmb.plugins.declared.value_names_and_units import OTHER_UNITS, UNITS

LONGEST_LINE: Final = 4 << 10
"""Longer lines are left out: they are no step lines, but configurations and tables."""

MOSTLY: Final = 0.6
"""The share of lines on which a step number rises or stays. Ranks print the same step, and restarts go back."""

BAR: Final = "\ue000"
"""The text of a shape instead of what a progress bar has between ``|``, which differs from line to line."""

_BAR: Final = re.compile(r"(?<=%)\|[ #0-9\u2580-\u259f]*+\|")
"""A bar of tqdm. Without Unicode, tqdm draws it of ``#`` and a digit: https://github.com/tqdm/tqdm, tqdm/std.py."""

_BEGINS: Final = "|".join(
    ["(?<![\\w.])", *(rf"(?<=\b(?i:{word}))|(?<=_(?i:{word}))" for word in ("step", "iter", "iteration", "batch"))]
)
"""The places at which a number begins: not within a word, except in ``step12``."""

_TOKEN: Final = re.compile(rf"(?=[-+.0-9nNiI])(?:{_BEGINS})(?:{CLOCK.decode()}|{NUMBER.decode()})")
_STEP: Final = re.compile(r"(?<![a-z])(?:step|iter|iteration|it|batch|update)s?[\"'\]]?\s*[:=#]?\s*\[?$", re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"[|,;{}<>\[\]\u2580-\u259f]| - |\) ")
_UNIT: Final = re.compile(rf" (?:{'|'.join(UNITS)}|{OTHER_UNITS})(?![A-Za-z_])(?:/[a-z]+)?")
_RATE: Final = re.compile(r" [A-Za-z]+/s(?:ec|econd)?(?= +[A-Za-z]| *(?:[|,;]|$))")
"""A rate behind a number, as in ``92 tok/s mem=12.3``, and not the words before the next one, as in ``92 tok/s 12``."""

_MINIMUM: Final = re.compile(r" min\s*[:=]?\s*")
_MINUTES: Final = re.compile(r"\s?min(?:ute)?s?,?\s*")
_SECONDS: Final = re.compile(r"\s?s(?:ec|econd)?s?(?![A-Za-z_])")

TIME: Final = re.compile(
    r"(?<![a-z])(?:times?|timing|seconds?|secs?|elapsed|duration|took|dt|latency)(?![a-z])", re.IGNORECASE
)
"""Words before a number that make it a time."""


@attrs.frozen(slots=False)
class Shape:
    """Lines that differ only in their numbers. ``texts`` are around the numbers, and each row has those of one line."""

    texts: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[bytes, ...]

    def label(self, column: int) -> str:
        """Return the text before a number, from the last separator."""
        text = self.texts[column].rpartition(BAR)[2]
        return _SEPARATOR.split(text)[-1].lstrip() or text.lstrip()

    def unit(self, column: int) -> str:
        """Return the text that follows a number, up to a separator or a blank.

        If the number is a time, its unit may follow after a blank, and so may a rate. In ``time 12.5 min 10.1``,
        ``min`` is the minimum, unless seconds follow.
        """
        after = _SEPARATOR.split(self.texts[column + 1])[0]
        behind = self.texts[column + 2 : column + 3]
        is_minimum = behind and _MINIMUM.fullmatch(self.texts[column + 1]) and not _SECONDS.match(behind[0])
        is_time = (TIME.search(self.label(column)) or self.is_time_of_step(column)) and not is_minimum
        unit = self._rate(column) or (_UNIT.match(after) if is_time else None)
        return unit[0] if unit else after.split(" ")[0]

    def _rate(self, column: int) -> re.Match[str] | None:
        """Return the rate that is the unit of a number."""
        is_last = column + 2 == len(self.texts)
        return _RATE.match(self.texts[column + 1] + ("" if is_last else "0"))  # the next number

    def words_before(self, column: int) -> str:
        """Return the text before a number, from the last separator, without the unit of the number before it."""
        label = self.label(column)
        unit = self.unit(column - 1) if column else ""
        is_known = _UNIT.fullmatch(f" {unit.strip()}") or self._rate(column - 1)
        is_unit = is_known and self.texts[column].startswith(f"{unit} ")
        return label.removeprefix(unit.strip()).lstrip() if is_unit else label

    def words_after(self, column: int) -> str:
        """Return the unit of a number, even an unknown one after a blank if no words come before the number."""
        before, after = self.texts[column], self.texts[column + 1]
        has_label = re.search("[A-Za-z]", _SEPARATOR.split(before)[-1])
        return (self.unit(column) if has_label else _SEPARATOR.split(after)[0]).strip()

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """The texts of each number on all lines."""
        return list(zip(*self.rows, strict=True))

    @cached_property
    def values(self) -> list[tuple[float, ...]]:
        """The values of each number on all lines, or nothing for a time of day."""
        return [
            () if any(":" in text for text in texts) else tuple(as_number("", text.encode()) for text in texts)
            for texts in self.columns
        ]

    @cached_property
    def step(self) -> int | None:
        """The column of the step number: the first one after a word such as step, else the first that rises."""
        columns = [each for each in range(len(self.columns)) if self.rises(each) and not self.is_of_duration(each)]
        labelled = [column for column in columns if _STEP.search(self.label(column))]
        if labelled or len(self.rows) == 1:
            return next(iter(labelled), None)
        return next((each for each in columns if not self.unit(each).startswith(("%", ":", "-"))), None)

    def is_time_of_step(self, column: int) -> bool:
        """Check whether only ``in`` is between a number and the step number, as in ``step 3 of 9 in 0.5 seconds``.

        The number is a time if a unit follows.
        """
        step = column - 2 if self.texts[column - 1].strip() in ("/", "of") else column - 1
        return step >= 0 and self.texts[column].strip().lower() == "in" and bool(_STEP.search(self.label(step)))

    def is_of_duration(self, column: int) -> bool:
        """Check whether a number is that of the minutes or seconds in ``[00:41<02:10`` or ``5 min 20 s``."""
        after, *behind = self.texts[column + 1 : column + 3]
        has_seconds = bool(behind) and _MINUTES.fullmatch(after) and _SECONDS.match(behind[0])
        return ":" in (self.texts[column], after) or bool(has_seconds)

    @property
    def names_step(self) -> bool:
        """True if a word such as step comes before the step number."""
        return self.step is not None and bool(_STEP.search(self.label(self.step)))

    def is_constant(self, column: int) -> bool:
        """Check whether a number is the same on all of several lines."""
        return len(self.rows) > 1 and len(set(self.columns[column])) == 1

    def rises(self, column: int) -> bool:
        """Check whether a number is an integer that rises from line to line. A single line always rises."""
        values = self.values[column]
        if not values or not all(value >= 0 and value.is_integer() for value in values):
            return False
        if any(text[-1].isalpha() for text in self.columns[column]):
            return False  # shortened, as in 1.21K
        pairs = list(pairwise(values))
        rising = sum(before <= value for before, value in pairs)
        return not pairs or (len(set(values)) > 1 and rising >= MOSTLY * len(pairs))


def find_shapes(lines: Iterable[bytes]) -> list[Shape]:
    """Return the shapes of all lines with numbers, the most frequent first."""
    found: dict[tuple[str, ...], list[tuple[tuple[str, ...], bytes]]] = {}
    for line in lines:
        if len(line) <= LONGEST_LINE:
            texts, numbers = _split(line.decode(errors="replace"))
            found.setdefault(texts, []).append((numbers, line))
    shapes = [Shape(texts, *zip(*each, strict=True)) for texts, each in found.items() if len(texts) > 1]
    return sorted(shapes, key=lambda each: -len(each.rows))


def _split(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the texts around the numbers of a line, and the numbers."""
    line = _BAR.sub(f"|{BAR}|", line)
    texts, numbers, place = [], [], 0
    for match in _numbers(line):
        texts.append(line[place : match.start()])
        numbers.append(match[0])
        place = match.end()
    texts.append(line[place:])
    return tuple(re.sub(r"[ \t\u2580-\u259f]+", " ", text) for text in texts), tuple(numbers)


def _numbers(line: str) -> Iterator[re.Match[str]]:
    """Yield the numbers of a line. NaN and infinity count only as values, as in ``loss: nan``."""
    for match in _TOKEN.finditer(line):
        is_word = match[0].lstrip("+-")[0].isalpha()
        is_value = line[: match.start()].rstrip().endswith((":", "=")) and not line[match.end() :][:1].isalnum()
        if not is_word or is_value:
            yield match
