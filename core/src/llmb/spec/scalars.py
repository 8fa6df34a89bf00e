"""The single values of a spec: their types, what each takes, and what is said of anything else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NewType

import attrs

from llmb.values.duration import DURATION, seconds

PositiveInt = NewType("PositiveInt", int)
"""An integer from 1 to LARGEST."""

PositiveFloat = NewType("PositiveFloat", float)
"""A finite number above 0."""

Fraction = NewType("Fraction", float)
"""A number above 0 and below 1."""

Duration = NewType("Duration", int)
"""Whole seconds, or a string such as "1h30m", of at most LONGEST_S; as a value always seconds."""

LARGEST = 2**31 - 1
"""Frameworks and schedulers hold their counts in signed integers of 32 bits, and nothing that is counted has more."""

LONGEST_S = 365 * 24 * 3600
"""A year: no scheduler lets a job run for longer, and shells and dates overflow far above."""


class UnexpectedError(ValueError):
    """The value is not of the type; its text is what was expected."""


@attrs.frozen
class Scalar:
    """A type of single values. ``convert`` takes what ``accepts`` lets through; ``most`` is a bound and its text."""

    expected: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any]
    most: tuple[int, str] | None = None

    def take(self, value: Any, _cls: Any = None) -> Any:
        """The value as the type has it. Raises UnexpectedError."""
        if not self.accepts(value):
            raise UnexpectedError(self.expected)
        converted = self.convert(value)
        if self.most and converted > self.most[0]:
            raise UnexpectedError(self.most[1])
        return converted


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_duration(value: Any) -> bool:
    try:
        return seconds(value) > 0
    except ValueError:
        return False


SCALARS: Mapping[Any, Scalar] = {
    int: Scalar("an integer", _whole, int),
    float: Scalar("a finite number", _number, float),
    bool: Scalar("true or false", lambda value: isinstance(value, bool), bool),
    str: Scalar("a string", lambda value: isinstance(value, str), str),
    PositiveInt: Scalar(
        "a positive integer",
        lambda value: _whole(value) and value >= 1,
        int,
        (LARGEST, f"an integer of at most {LARGEST}"),
    ),
    Duration: Scalar(DURATION, _is_duration, seconds, (LONGEST_S, "at most one year, 8760h")),
    Fraction: Scalar(
        "a number above 0 and below 1, such as 0.05", lambda value: _number(value) and 0 < value < 1, float
    ),
    PositiveFloat: Scalar("a positive number", lambda value: _number(value) and value > 0, float),
}
