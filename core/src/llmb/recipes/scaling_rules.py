"""Rules of weak scaling: numbers of a recipe that depend on the number of GPUs, such as "2 * gpus"."""

import functools
import re
from typing import Annotated

from llmb.values.types.numbers import LARGEST
from llmb.values.types.value_type import accepting

_TERM = r"\d+|gpus_per_node|gpus|nodes"
_RULE = re.compile(rf" *(?:{_TERM}) *(?:[*/] *(?:{_TERM}) *)*")
_CONDITION = re.compile(r"(gpus|nodes)\s*(<|>=)\s*(\d+)")


def is_rule(rule: object) -> bool:
    """Check whether `evaluate_rule` can evaluate a rule: a positive integer, or products and quotients."""
    if isinstance(rule, str):
        return _RULE.fullmatch(rule) is not None
    return isinstance(rule, int) and not isinstance(rule, bool) and 1 <= rule <= LARGEST


Rule = Annotated[
    int | str,
    accepting(
        'a positive integer, or a rule such as "gpus", "2 * gpus", "252 * gpus / 576"',
        is_rule,
        schema={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9a-z_ */]+$"}]},
    ),
]
"""A number, or a rule that computes it."""


def _is_condition(condition: object) -> bool:
    """Check whether `evaluate_condition` can evaluate a condition."""
    return isinstance(condition, str) and (condition == "any" or _CONDITION.fullmatch(condition) is not None)


Condition = Annotated[
    str, accepting('"any", or a comparison such as "nodes < 64"', _is_condition, schema={"type": "string"})
]
"""A condition on the number of GPUs or nodes."""


def evaluate_condition(condition: str, gpus: int, gpus_per_node: int) -> bool:
    """Check whether a condition is true for this number of GPUs."""
    match = _CONDITION.fullmatch(condition)
    if match is None:
        return True
    value = _values(gpus, gpus_per_node)[match[1]]
    return value < int(match[3]) if match[2] == "<" else value >= int(match[3])


def evaluate_rule(rule: int | str, gpus: int, gpus_per_node: int = 8) -> int:
    """Return the value of a rule for this number of GPUs.

    Raise ValueError, with the value as its text, if the value is not a positive integer.
    """
    if isinstance(rule, int):  # most rules, of each run of a sweep
        return rule
    numerator = denominator = 1
    values = _values(gpus, gpus_per_node)
    for operator, term in _factors(rule):
        factor = values.get(term) or int(term)
        if operator != "/":
            numerator *= factor
        elif factor:
            denominator *= factor
        else:
            raise ValueError("a division by 0")
    if numerator > LARGEST * denominator:
        raise ValueError("too large")
    if numerator % denominator or not numerator:
        raise ValueError(f"{numerator / denominator:g}")
    return numerator // denominator


@functools.cache
def _factors(rule: str) -> list[tuple[str, str]]:
    """Return the terms of a rule, each with the operator before it."""
    return re.findall(rf"([*/]?) *({_TERM})", rule)


def _values(gpus: int, gpus_per_node: int) -> dict[str, int]:
    return {"gpus": gpus, "gpus_per_node": gpus_per_node, "nodes": -(-gpus // gpus_per_node)}
