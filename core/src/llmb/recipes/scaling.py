"""Numbers that follow from the number of GPUs, as recipes write them for weak scaling."""

from __future__ import annotations

import re
from fractions import Fraction

_RULE = re.compile(r"(?:\d+|gpus)(?:[*/](?:\d+|gpus))*")

RULE = 'a positive integer, or a rule such as "gpus", "2 * gpus", "252 * gpus / 576"'
"""What a rule looks like, for messages."""


def is_rule(rule: object) -> bool:
    """Whether `scaled` can evaluate it: a positive integer, or products and quotients of integers and ``gpus``."""
    if isinstance(rule, str):
        return _RULE.fullmatch(rule.replace(" ", "")) is not None
    return isinstance(rule, int) and not isinstance(rule, bool) and rule >= 1


def rule(value: object) -> int | str:
    """A rule, as a table holds it. Raises ValueError for anything else, with what was expected as its text."""
    if not is_rule(value):
        raise ValueError(RULE)
    return value  # type: ignore[return-value]  # is_rule lets only int and str pass


def scaled(rule: int | str, gpus: int) -> int:
    """The rule's value for this number of GPUs, from left to right.

    Raises ValueError, with the value as its text, where that is not a whole number of at least 1.
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
