"""Types of numbers, such as PositiveInt and PeakFlops."""

from collections.abc import Callable
from typing import Annotated, Any

from llmb.values.errors import Fault
from llmb.values.types.value_type import InvalidValueError, ValueType, accepting, is_integer, is_number

LARGEST = 2**31 - 1
"""The largest integer: frameworks and schedulers store their counts in 32 bits with a sign."""


def _integer_type(expected: str, least: int) -> ValueType:
    """Return the type of the integers from ``least`` to LARGEST."""

    def convert(value: Any) -> int:
        if not is_integer(value) or value < least:
            raise InvalidValueError.of(value, expected)
        if value > LARGEST:
            raise InvalidValueError.of(value, f"an integer of at most {LARGEST}")
        return int(value)

    return ValueType(expected, convert, schema={"type": "integer", "minimum": least, "maximum": LARGEST})


PositiveInt = Annotated[int, _integer_type("a positive integer", 1)]
"""An integer from 1 to LARGEST."""

NonNegativeInt = Annotated[int, _integer_type("an integer of at least 0", 0)]
"""An integer from 0 to LARGEST."""


def number_type(expected: str, accepts: Callable[[float], bool], **bounds: float) -> ValueType:
    """Return the type of the finite numbers for which ``accepts`` is true. ``bounds`` are those of its JSON Schema."""
    schema = {"type": "number", **bounds}
    return accepting(expected, lambda value: is_number(value) and accepts(value), float, schema=schema)


PositiveFloat = Annotated[float, number_type("a positive number", lambda value: value > 0, exclusiveMinimum=0)]
"""A finite number above 0."""

NonNegativeFloat = Annotated[float, number_type("a number of at least 0", lambda value: value >= 0, minimum=0)]
"""A finite number of at least 0."""

PEAK_FLOPS = (1e6, 1e18)
"""The least and the largest peak in FLOP/s: a share of a slow CPU, and a hundred times that of any GPU."""


def _peak_flops(value: Any) -> float:
    """Return a peak in FLOP/s. The error of a value in TFLOP/s names the value in FLOP/s."""
    if not is_number(value):
        raise InvalidValueError.of(value, "a peak in FLOP/s, such as 989e12")
    if problem := peak_problem(value):
        raise InvalidValueError(Fault(message=problem))
    return float(value)


def peak_problem(value: float) -> str:
    """Return why a peak in FLOP/s is impossible, or ""."""
    if PEAK_FLOPS[0] <= value <= PEAK_FLOPS[1]:
        return ""
    in_tera = PEAK_FLOPS[0] <= value * 1e12 <= PEAK_FLOPS[1]
    advice = f"write {value:g}e12 for {value:g} TFLOP/s" if in_tera else "the range is {:g} to {:g}".format(*PEAK_FLOPS)
    return f"{value:g} FLOP/s is out of range; {advice}"


PeakFlops = Annotated[
    float,
    ValueType(
        "a peak in FLOP/s",
        _peak_flops,
        schema={"type": "number", "minimum": PEAK_FLOPS[0], "maximum": PEAK_FLOPS[1]},
    ),
]
"""The dense peak of one GPU in FLOP/s."""

_FRACTION = "a number above 0 and below 1, such as 0.05"

Fraction = Annotated[float, number_type(_FRACTION, lambda value: 0 < value < 1, exclusiveMinimum=0, exclusiveMaximum=1)]
"""A number above 0 and below 1."""
