"""Tables to attrs values with cattrs, strictly, and every fault of a table at once.

By default cattrs turns "2" into 2, a string into a tuple of characters and a table into its keys; the hooks here
take a value of the stated type or say what was expected.
"""

from __future__ import annotations

import difflib
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NewType, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError

from llmb.values.duration import DURATION, seconds
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, freeze

T = TypeVar("T")

PositiveInt = NewType("PositiveInt", int)
"""A whole number of at least 1."""

PositiveFloat = NewType("PositiveFloat", float)
"""A number above 0."""

Duration = NewType("Duration", int)
"""Whole seconds, or a string such as "1h30m"; as a value always seconds."""


class _UnexpectedError(ValueError):
    """The value is not of the type; its text is what was expected."""


def structure(table: Any, cls: type[T], key: str) -> tuple[T | None, tuple[Fault, ...]]:
    """The table as a value of ``cls``, or all that is wrong in it, each with its key below ``key``."""
    if not isinstance(table, Mapping):
        return None, (Fault(message=f"is {_show(table)}", key=key, expected="a table"),)
    try:
        return _converter().structure(dict(table), cls), ()
    except BaseValidationError as error:
        return None, tuple(_faults(error, key, table))


def unstructure(value: Any) -> Any:
    """An attrs value as tables, without the keys that are null (TOML has none)."""
    if attrs.has(type(value)):
        fields = {field.name: unstructure(getattr(value, field.name)) for field in attrs.fields(type(value))}
        return {name: item for name, item in fields.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: unstructure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [unstructure(item) for item in value]
    return value


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for cls, check in _CHECKS.items():
        converter.register_structure_hook(cls, _plain(check))
    converter.register_structure_hook_factory(_is_tuple, lambda cls: _tuple_hook(cls, converter))
    converter.register_structure_hook_factory(_is_mapping, lambda cls: _mapping_hook(cls, converter))
    converter.register_structure_hook_factory(_is_choice, _choice_hook)
    converter.register_structure_hook_factory(_is_union, lambda cls: _union_hook(cls, converter))
    return converter


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_duration(value: Any) -> bool:
    try:
        return seconds(value) > 0
    except ValueError:
        return False


_CHECKS: dict[Any, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    int: ("a whole number", _whole, int),
    float: ("a number", _number, float),
    bool: ("true or false", lambda value: isinstance(value, bool), bool),
    str: ("a string", lambda value: isinstance(value, str), str),
    PositiveInt: ("a whole number of at least 1", lambda value: _whole(value) and value >= 1, int),
    Duration: (DURATION, _is_duration, seconds),
    PositiveFloat: ("a number above 0", lambda value: _number(value) and value > 0, float),
}


def _plain(check: tuple[str, Callable[[Any], bool], Callable[[Any], Any]]) -> Callable[[Any, Any], Any]:
    expected, accepts, convert = check

    def hook(value: Any, _cls: Any) -> Any:
        if not accepts(value):
            raise _UnexpectedError(expected)
        return convert(value)

    return hook


def describe(cls: Any) -> str:
    """What a value of this type looks like, for messages."""
    if cls in _CHECKS:
        return _CHECKS[cls][0]
    if get_origin(cls) is Literal:
        return " or ".join(_show(value) for value in get_args(cls))
    if _is_union(cls):
        return " or ".join(describe(each) for each in get_args(cls) if each is not type(None))
    if _is_tuple(cls):
        inner = get_args(cls)
        return f"a list of {len(inner)} values" if Ellipsis not in inner else f"a list, each {describe(inner[0])}"
    if _is_mapping(cls):
        return f"a table, each value {describe((*get_args(cls), str)[1])}"
    return "a table"


def _is_tuple(cls: Any) -> bool:
    return get_origin(cls) is tuple


def _is_mapping(cls: Any) -> bool:
    return get_origin(cls) in (Mapping, FrozenMap, dict)


def _is_choice(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _is_union(cls: Any) -> bool:
    return get_origin(cls) in (Union, types.UnionType)


def _tuple_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner = get_args(cls)

    def hook(value: Any, _cls: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _UnexpectedError(describe(cls))
        kinds = [inner[0]] * len(value) if Ellipsis in inner else list(inner)
        if len(kinds) != len(value):
            raise _UnexpectedError(describe(cls))
        return tuple(converter.structure(item, kind) for item, kind in zip(value, kinds, strict=True))

    return hook


def _mapping_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    value_type = (*get_args(cls), str)[1]

    def hook(value: Any, _cls: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _UnexpectedError(describe(cls))
        if value_type is Any:
            return freeze(value)
        return FrozenMap((key, converter.structure(item, value_type)) for key, item in value.items())

    return hook


def _choice_hook(cls: Any) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _cls: Any) -> Any:
        if not any(type(value) is type(choice) and value == choice for choice in get_args(cls)):
            raise _UnexpectedError(describe(cls))
        return value

    return hook


def _union_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    kinds = get_args(cls)

    def hook(value: Any, _cls: Any) -> Any:
        if value is None and type(None) in kinds:
            return None
        for kind in kinds:
            if kind is type(None):
                continue
            try:
                return converter.structure(value, kind)
            except (_UnexpectedError, BaseValidationError):
                continue
        raise _UnexpectedError(describe(cls))

    return hook


def _faults(error: BaseValidationError, key: str, table: Any) -> list[Fault]:
    """Walk the exception group down to the leaves (``transform_error`` would drop their messages)."""
    found: list[Fault] = []
    for inner in error.exceptions:
        name = _name_in_notes(inner)
        where = f"{key}.{name}" if name else key
        value = table.get(name) if name and isinstance(table, Mapping) else table
        if isinstance(inner, BaseValidationError):
            found += _faults(inner, where, value)
        elif isinstance(inner, ForbiddenExtraKeysError):
            found += _unknown_keys(inner, key)
        elif isinstance(inner, KeyError):
            found.append(Fault(message="is missing", key=where, expected=_expected_of(error, name)))
        else:
            found.append(Fault(message=f"is {_show(value)}", key=where, expected=str(inner)))
    return found


def _name_in_notes(error: BaseException) -> str | None:
    return next((note.name for note in getattr(error, "__notes__", ()) if hasattr(note, "name")), None)


def _expected_of(error: BaseValidationError, name: str | None) -> str | None:
    cls = getattr(error, "cl", None)
    if name is None or cls is None:
        return None
    field = attrs.fields_dict(attrs.resolve_types(cls)).get(name)
    return describe(field.type) if field else None


def _unknown_keys(error: ForbiddenExtraKeysError, key: str) -> list[Fault]:
    known = [field.name for field in attrs.fields(error.cl)]
    return [unknown_key(f"{key}.{extra}", extra, known) for extra in sorted(error.extra_fields)]


def unknown_key(key: str, name: str, known: list[str]) -> Fault:
    """The fault of a key that nothing reads, with the nearest one that is."""
    nearest = difflib.get_close_matches(name, known, n=1)
    expected = f"one of {', '.join(known)}" if known else "no key here"
    return Fault(message="is not a key here", key=key, expected=expected, nearest=nearest[0] if nearest else None)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"a list ({', '.join(_show(item) for item in value)})"[:80]
    return f'"{value}"' if isinstance(value, str) else str(value)
