"""Rules of weak scaling: numbers of a recipe that depend on the number of GPUs, such as "2 * gpus"."""

import re
from fractions import Fraction
from typing import Annotated

from llmb.values.scalars import accepting

_RULE = re.compile(r"(?:\d+|gpus)(?:[*/](?:\d+|gpus))*")


def is_rule(rule: object) -> bool:
    """Check whether `scaled` can evaluate a rule: a positive integer, or products and quotients with ``gpus``."""
    if isinstance(rule, str):
        return _RULE.fullmatch(rule.replace(" ", "")) is not None
    return isinstance(rule, int) and not isinstance(rule, bool) and rule >= 1


Rule = Annotated[
    int | str,
    accepting('a positive integer, or a rule such as "gpus", "2 * gpus", "252 * gpus / 576"', is_rule),
]
"""A number, or a rule that computes it."""


def scaled(rule: int | str, gpus: int) -> int:
    """Return the value of a rule for this number of GPUs, computed from left to right.

    Raise ValueError, with the value as its text, if the value is not a positive integer.
    """
    value = Fraction(1)
    operator = "*"
    for word in re.findall(r"\d+|gpus|[*/]", str(rule)):
        if word in "*/":
            operator = word
            continue
        factor = gpus if word == "gpus" else int(word)
        if operator == "/" and not factor:
            raise ValueError("a division by 0")
        value = value * factor if operator == "*" else value / factor
    if value.denominator != 1 or value < 1:
        raise ValueError(f"{float(value):g}")
    return int(value)
