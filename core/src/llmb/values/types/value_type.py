"""The type of a key or an argument: how values are described, checked and converted."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import attrs

from llmb.values.errors import Fault
from llmb.values.texts.error_text import invalid_value


class InvalidValueError(ValueError):
    """A value that does not have its type. The keys of ``errors`` are relative to the value: ``.name``, ``[0]``."""

    def __init__(self, *errors: Fault) -> None:
        super().__init__(*errors)
        self.errors = errors

    @classmethod
    def of(cls, value: Any, expected: str) -> Self:
        """Return the error of a value, with what was expected."""
        return cls(Fault(message=invalid_value(value), expected=expected))

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


def with_prefix(prefix: str, errors: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the errors with this prefix before their relative keys."""
    return tuple(attrs.evolve(error, key=f"{prefix}{error.key or ''}") for error in errors)


@attrs.frozen(repr=False)
class ValueType:
    """A type with its description for messages. ``convert`` returns a value of it, or raises InvalidValueError.

    ``schema`` is its JSON Schema, which accepts every valid value and rejects those of another structure. All values of
    the Python types in ``unchanged`` are valid and stay as they are. In an annotation, ``Annotated[int,
    ValueType(...)]`` is an int for type checkers and this type for llmb.
    """

    expected: str
    convert: Callable[[Any], Any]
    schema: Mapping[str, Any] = attrs.field(factory=dict, eq=False)
    unchanged: frozenset[type] = frozenset()

    def __repr__(self) -> str:
        return self.expected  # help() shows it in the signatures of constructors


def accepting(
    expected: str,
    accepts: Callable[[Any], bool],
    convert: Callable[[Any], Any] | None = None,
    *,
    schema: Mapping[str, Any],
    unchanged: frozenset[type] = frozenset(),
) -> ValueType:
    """Return the type of all values for which ``accepts`` is true. `ValueType` explains the other arguments."""

    def checked(value: Any) -> Any:
        if not accepts(value):
            raise InvalidValueError.of(value, expected)
        return convert(value) if convert else value

    return ValueType(expected, checked, schema, unchanged)


def matching(expected: str, pattern: str) -> ValueType:
    """Return the type of all strings that match a regular expression completely."""
    return accepting(
        expected,
        lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None,
        schema={"type": "string", "pattern": f"^(?:{pattern})$"},
    )


def is_integer(value: Any) -> bool:
    """Check whether a value is an integer, and neither True nor False."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Check whether a value is finite as a float. Neither NaN nor an integer of 400 digits is."""
    most = sys.float_info.max
    return (is_integer(value) or isinstance(value, float)) and -most <= value <= most


BUILT_IN: Mapping[Any, ValueType] = {
    int: accepting("an integer", is_integer, schema={"type": "integer"}, unchanged=frozenset({int})),
    float: accepting("a finite number", is_number, float, schema={"type": "number"}),
    bool: accepting(
        "true or false",
        lambda value: isinstance(value, bool),
        schema={"type": "boolean"},
        unchanged=frozenset({bool}),
    ),
    str: accepting(
        "a string", lambda value: isinstance(value, str), schema={"type": "string"}, unchanged=frozenset({str})
    ),
}
"""The built-in types. Nothing is converted: "2" is not an integer."""
