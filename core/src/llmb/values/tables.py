"""TOML tables checked key by key, with every fault of a table at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from llmb.values.duration import seconds
from llmb.values.error_text import REQUIRED_KEY, invalid_value, unknown_key
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import freeze

Reader = Callable[[Any], Any]
"""Takes a value from TOML and returns it as it is used. Raises ValueError with what was expected as its text."""


def check_table(
    table: object, key: str, checks: Mapping[str, Reader], required: Iterable[str] = ()
) -> tuple[dict[str, Any], list[Fault]]:
    """The values of a table that are right, and the faults of the others: unknown, missing, or not as expected.

    ``key`` is the table's own place in the file, "" for the file itself.
    """
    if not isinstance(table, Mapping):
        return {}, [Fault(message=invalid_value(table), key=key, expected="a table")]
    prefix = f"{key}." if key else ""
    values: dict[str, Any] = {}
    faults = [unknown_key(prefix + name, name, checks) for name in table if name not in checks]
    faults += [Fault(message=REQUIRED_KEY, key=prefix + name) for name in required if name not in table]
    for name, check in checks.items():
        if name in table:
            try:
                values[name] = check(table[name])
            except ValueError as error:
                faults.append(Fault(message=invalid_value(table[name]), key=prefix + name, expected=str(error)))
    return values, faults


def checked(table: object, key: str, checks: Mapping[str, Reader], required: Iterable[str] = ()) -> dict[str, Any]:
    """The values of a table of a recipe. Raises RecipeError with the faults that `check_table` finds."""
    values, faults = check_table(table, key, checks, required)
    if faults:
        raise RecipeError(*faults)
    return values


def whole(value: Any) -> int:
    """A count: an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a positive integer")
    return value


def natural(value: Any) -> int:
    """An integer of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("an integer of at least 0")
    return value


def number(value: Any) -> float:
    """A finite number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError("a positive number")
    return float(value)


def figure(value: Any) -> float | None:
    """A published figure; ``nan`` stands for one that the publisher does not state (TOML has no null)."""
    if isinstance(value, float) and math.isnan(value):
        return None
    try:
        return number(value)
    except ValueError:
        raise ValueError("a positive number, or nan if the publisher states none") from None


def string(value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a string")
    return value


def words(value: Any) -> tuple[str, ...]:
    """Strings, of which none is empty."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise ValueError("a list of strings")
    return tuple(value)


def flag(value: Any) -> bool:
    """true or false."""
    if value is not True and value is not False:
        raise ValueError("true or false")
    return bool(value)


def duration(value: Any) -> int:
    """A duration, in seconds."""
    return seconds(value)


def settings(value: Any) -> Any:
    """A table that only the plugin understands, frozen."""
    if not isinstance(value, Mapping):
        raise ValueError("a table")  # noqa: TRY004  # a reader tells what it expected by ValueError alone
    return freeze(value)


def raw(value: Any) -> Any:
    """Whatever is there: it is checked elsewhere."""
    return value


def one_of(*words: str) -> Reader:
    """One of these words."""

    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(" or ".join(f'"{word}"' for word in words))
        return str(value)

    return check


def listed(check: Reader, *, distinct: bool = False) -> Reader:
    """One value or a list of them, each as ``check`` wants it; a tuple in any case."""

    def check_all(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        try:
            checked = tuple(check(each) for each in values)
        except ValueError as error:
            raise ValueError(f"{error}, or a list of such values") from None
        if not checked:
            raise ValueError("a list with at least one item")
        if distinct and len(set(checked)) != len(checked):
            raise ValueError("each value once")
        return checked

    return check_all
