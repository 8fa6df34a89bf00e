"""Types of what hooks return: which types are accepted for the specified ones, and iterables that are read once."""

import functools
import types
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from llmb.values.steps import LogParser


class _WrongTypeError(Exception):
    """A value in the result of a hook that has another type than the hook specifies."""


@runtime_checkable
class _Parser(Protocol):
    """The methods of a log parser that does not inherit from `LogParser`."""

    def feed(self, block: bytes, source: str = "") -> Any: ...

    def close(self) -> Any: ...


_ACCEPTED: Mapping[Any, Any] = {float: (int, float), LogParser: _Parser}
"""The types that are accepted for a specified type."""

_NO_SEQUENCE = (str, bytes, Mapping)
"""Iterables that are a mistake if a sequence is specified."""


def check_result(result: Any, specification: Callable[..., Any]) -> tuple[Any, str]:
    """Return the result of a hook with its iterables exhausted, and the problem with its type, or ""."""
    expected = _return_type(specification)
    if expected is type(None) and not isinstance(result, Coroutine):  # the result is not used
        expected = Iterable[object] if isinstance(result, Generator) else object  # a generator runs only if it is read
    elif isinstance(result, type):
        return None, f"returned the class {result.__name__}; return {result.__name__}()"
    try:
        return _exhausted(result, expected), ""
    except _WrongTypeError as error:
        [wrong] = error.args
        found = type_name(result) if wrong is result else f"{type_name(result)} with {type_name(wrong)} in it"
        return None, f"returned {found}; expected {specification.__annotations__['return']}"


def type_name(value: object) -> str:
    """Return the name of a value's type, as in an error."""
    return "None" if value is None else type(value).__name__


@functools.cache
def _return_type(specification: Callable[..., Any]) -> Any:
    return get_type_hints(specification)["return"]


def _exhausted(value: Any, expected: Any) -> Any:
    """Return the value with its iterables read into tuples and dictionaries. Raise _WrongTypeError."""
    if type(value) is expected:  # most results; the annotation is not examined
        return value
    origin, inner = get_origin(expected) or expected, get_args(expected)
    if origin is types.UnionType:  # of a type and None
        return None if value is None else _exhausted(value, inner[0])
    if origin in (tuple, Sequence, Iterable) and isinstance(value, Iterable) and not isinstance(value, _NO_SEQUENCE):
        return tuple(_exhausted(each, inner[0]) for each in value)
    if origin is Mapping and isinstance(value, Mapping):
        return {key: _exhausted(each, inner[1]) for key, each in value.items()}
    inherits = origin in type(value).__mro__  # faster than isinstance, which examines each method of a Protocol
    fits = inherits or isinstance(value, _ACCEPTED.get(origin, origin))
    if inner or not fits or (origin is float and isinstance(value, bool)):
        if isinstance(value, Coroutine):
            value.close()  # it would warn that it was never awaited
        raise _WrongTypeError(value)
    return value
