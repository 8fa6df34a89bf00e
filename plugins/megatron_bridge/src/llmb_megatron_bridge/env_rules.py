"""Environment variables that depend on values of the run, as the publisher's launcher computes them.

A recipe states the rules in tables ``[framework.env_rules.NAME]``. A rule applies if all conditions of its ``when``
hold. Each condition is a value, a list of values or a comparison such as ``"> 8"``. A later rule replaces the variables
of the rules before it.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from llmb import Run, with_paths

COMPARISON = re.compile(r"(<=|>=|<|>)\s*(\d+)")
OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def env_of_rules(run: Run[Any], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of all rules that apply. ``{ep}`` in a variable is the value of that name.

    ``values`` are the `script_values` of the run.
    """
    env: dict[str, str] = {}
    for rule in run.settings.get("env_rules", {}).values():
        if all(_holds(condition, values[name]) for name, condition in rule.get("when", {}).items()):
            env |= rule["env"]
    result: dict[str, str] = with_paths(env, run.paths, names={name: str(value) for name, value in values.items()})
    return result


def _holds(condition: Any, value: Any) -> bool:
    """Check whether a condition holds for a value of the run. None fulfils no comparison."""
    if isinstance(condition, str) and (match := COMPARISON.fullmatch(condition)):
        return value is not None and OPERATORS[match[1]](value, int(match[2]))
    return value in condition if isinstance(condition, list | tuple) else bool(value == condition)
