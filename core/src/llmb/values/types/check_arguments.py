"""Check the arguments of public functions by their annotations, for programs that no type checker has seen."""

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from llmb.values.texts.error_text import format_value, invalid_value

P = ParamSpec("P")
T = TypeVar("T")

NUMBERS = {int: Integral, float: Real}
"""The types that are accepted for an annotation: numbers of NumPy too."""

LISTS = (Iterable, Sequence)
"""Annotations of lists."""

NO_LISTS = (str, Mapping)
"""Iterable values that are no lists: a program means neither the letters of a string nor the keys of a table alone."""

HOW_TO_GET = {"Workload": ', such as llmb.load("spec.toml")', "Report": ', such as llmb.report("RUN")'}


def check_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with a check that raises TypeError for an argument of another type than annotated.

    ``self`` of a method, which has no annotation, is not checked.
    """
    signature = inspect.signature(function)
    hints: dict[str, Any] = {}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if not hints:  # the result's type may be imported for type checkers alone
            annotated = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
            hints.update(get_type_hints(types.SimpleNamespace(__annotations__=annotated), function.__globals__))
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            given = {}  # the call raises Python's own error, which names the function
        for name, value in given.items():
            if name in hints and not _accepts(hints[name], value):
                raise TypeError(f"{function.__name__}(): {name}: {_describe_mismatch(hints[name], value)}")
        return function(*args, **kwargs)

    return checked


def _accepts(kind: Any, value: object) -> bool:
    """Check whether a value has an annotated type. Of iterables, check the items of lists and tuples alone."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_accepts(each, value) for each in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        is_list = isinstance(value, tuple | list) and len(value) == len(inner)
        return is_list and all(map(_accepts, inner, value))  # type: ignore[call-overload]  # a list, of any items
    if origin in LISTS:
        is_list = isinstance(value, origin) and not isinstance(value, NO_LISTS)
        return is_list and all(_accepts(inner[0], x) for x in (value if isinstance(value, list | tuple) else ()))
    return isinstance(value, NUMBERS.get(kind, origin or kind)) and not (kind in NUMBERS and isinstance(value, bool))


def _describe_mismatch(kind: Any, value: object) -> str:
    """Return the problem with a value that does not have an annotated type, and what is expected."""
    if get_origin(kind) is Literal:
        found = invalid_value(value)
    else:
        found = "None" if value is None else f"{format_value(value)} is of type {type(value).__name__}"
    expected = _describe(kind)
    if isinstance(value, str) and expected.startswith("a list of str"):
        expected += f", such as [{value!r}]"
    return f"{found}; expected {expected}"


def _describe(kind: Any) -> str:
    """Return an annotated type as programs write it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_describe, inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin in LISTS:
        return f"a list of {_describe(inner[0])}"
    if origin:
        parts = ", ".join(map(_describe, inner)) if origin is not Callable else "..."
        return f"{origin.__name__}[{parts}]"
    name = "None" if kind is types.NoneType else getattr(kind, "__name__", str(kind))
    return name + HOW_TO_GET.get(name, "")
