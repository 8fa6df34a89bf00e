"""Tables to attrs values with cattrs, strictly, and every fault of a table at once.

By default cattrs turns "2" into 2, a string into a tuple of characters and a table into its keys; the hooks here
take a value of the stated type or say what was expected.
"""

from __future__ import annotations

import datetime
import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)

from llmb.spec.scalars import SCALARS, UnexpectedError
from llmb.spec.validators import validated
from llmb.values.error_text import REQUIRED_KEY, invalid_value, shown, unknown_key
from llmb.values.errors import Fault, SpecError
from llmb.values.frozen import FrozenMap

T = TypeVar("T")


def structure(table: Any, cls: type[T], key: str) -> tuple[T | None, tuple[Fault, ...]]:
    """The table as a value of ``cls``, or all that is wrong in it, each with its key below ``key``."""
    if not isinstance(table, Mapping):
        return None, (Fault(message=invalid_value(table), key=key, expected="a table"),)
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


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for cls, scalar in SCALARS.items():
        converter.register_structure_hook(cls, scalar.take)
    converter.register_structure_hook_factory(attrs.has, lambda cls: validated(cls, converter))
    converter.register_structure_hook_func(lambda cls: cls is Any, lambda value, _cls: _anything(value, converter))
    converter.register_structure_hook_factory(_is_list, lambda cls: _list_hook(cls, converter))
    converter.register_structure_hook_factory(_is_mapping, lambda cls: _mapping_hook(cls, converter))
    converter.register_structure_hook_factory(_is_choice, _choice_hook)
    converter.register_structure_hook_factory(_is_union, lambda cls: _union_hook(cls, converter))
    return converter


def describe(cls: Any) -> str:
    """What a value of this type looks like, for messages."""
    if cls in SCALARS:
        return SCALARS[cls].expected
    if get_origin(cls) is Literal:
        return " or ".join(shown(value) for value in get_args(cls))
    if _is_union(cls):
        kinds = [each for each in get_args(cls) if each is not type(None)]
        return " or ".join(describe(each) for each in kinds if not (each is int and float in kinds))
    if _is_list(cls):
        inner = get_args(cls)
        many = "" if _any_length(cls) else f" of {len(inner)}"
        return f"a list{many}, each {describe(inner[0])}"
    if _is_mapping(cls):
        return "a table" if _value_type(cls) is Any else f"a table, each value {describe(_value_type(cls))}"
    return "a table" if attrs.has(cls) else getattr(cls, "__name__", str(cls))


_LISTS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    tuple: tuple,
    list: list,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
}


def _is_list(cls: Any) -> bool:
    return get_origin(cls) in _LISTS


def _any_length(cls: Any) -> bool:
    return get_origin(cls) is not tuple or Ellipsis in get_args(cls)


def _is_mapping(cls: Any) -> bool:
    return get_origin(cls) in (Mapping, FrozenMap, dict)


def _value_type(cls: Any) -> Any:
    return (*get_args(cls), str)[1]


def _is_choice(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _is_union(cls: Any) -> bool:
    return get_origin(cls) in (Union, types.UnionType)


def _list_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner, make = get_args(cls), _LISTS[get_origin(cls)]

    def hook(value: Any, _cls: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise UnexpectedError(describe(cls))
        kinds = [inner[0]] * len(value) if _any_length(cls) else list(inner)
        if len(kinds) != len(value):
            raise UnexpectedError(describe(cls))
        return make(_items(cls, converter, ((index, value[index], kind) for index, kind in enumerate(kinds))))

    return hook


def _mapping_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _cls: Any) -> Any:
        if not isinstance(value, Mapping):
            raise UnexpectedError(describe(cls))
        items = _items(cls, converter, ((key, item, _value_type(cls)) for key, item in value.items()))
        return FrozenMap(zip(value, items, strict=True))

    return hook


def _anything(value: Any, converter: cattrs.Converter) -> Any:
    """Whatever TOML can hold and JSON too, frozen."""
    if isinstance(value, datetime.date | datetime.time):
        raise UnexpectedError("a string, a number, true or false, a list or a table")
    if isinstance(value, list | tuple):
        return tuple(_items(list, converter, ((index, item, Any) for index, item in enumerate(value))))
    if isinstance(value, Mapping):
        items = _items(dict, converter, ((key, item, Any) for key, item in value.items()))
        return FrozenMap(zip(value, items, strict=True))
    return value


def _items(cls: Any, converter: cattrs.Converter, items: Iterable[tuple[Any, Any, Any]]) -> list[Any]:
    """Each item (its index or key, its value, its type) structured; all that are wrong are raised together."""
    structured, wrong = [], []
    for index, value, kind in items:
        try:
            structured.append(converter.structure(value, kind))
        except (ValueError, TypeError, BaseValidationError) as error:
            error.add_note(IterableValidationNote(f"item {index}", index, kind))
            wrong.append(error)
    if wrong:
        raise IterableValidationError("items", wrong, cls)
    return structured


def _choice_hook(cls: Any) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _cls: Any) -> Any:
        if not any(type(value) is type(choice) and value == choice for choice in get_args(cls)):
            raise UnexpectedError(describe(cls))
        return value

    return hook


def _union_hook(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    kinds = [kind for kind in get_args(cls) if kind is not type(None)]

    def hook(value: Any, _cls: Any) -> Any:
        if value is None and len(kinds) < len(get_args(cls)):
            return None
        if len(kinds) == 1:
            return converter.structure(value, kinds[0])
        for kind in kinds:
            try:
                return converter.structure(value, kind)
            except (UnexpectedError, BaseValidationError):
                continue
        raise UnexpectedError(describe(cls))

    return hook


def _faults(error: BaseValidationError, key: str, table: Any) -> list[Fault]:
    """Walk the exception group down to the leaves (``transform_error`` would drop their messages)."""
    found: list[Fault] = []
    for inner in error.exceptions:
        where, value = _place(inner, key, table)
        if isinstance(inner, BaseValidationError):
            found += _faults(inner, where, value)
        elif isinstance(inner, ForbiddenExtraKeysError):
            found += _unknown_keys(inner, key)
        elif isinstance(inner, KeyError) and where != key:
            found.append(Fault(message=REQUIRED_KEY, key=where, expected=_expected_of(error, where.rpartition(".")[2])))
        elif isinstance(inner, UnexpectedError):
            found.append(Fault(message=invalid_value(value), key=where, expected=str(inner)))
        elif isinstance(inner, SpecError):  # of a plugin's own validator, which knows keys below the field's alone
            found += [attrs.evolve(fault, key=f"{where}.{fault.key}" if fault.key else where) for fault in inner.faults]
        elif not isinstance(inner, ValueError | TypeError):
            raise inner  # an error in a plugin's validator, not in the spec
        else:  # what a plugin's own validator says; attrs puts more than the text into its arguments
            found.append(Fault(message=str(inner.args[0] if inner.args else inner), key=where))
    return found


def _place(error: BaseException, key: str, table: Any) -> tuple[str, Any]:
    """The key and the value that an error is about, from the note that cattrs puts on it; else the table's own."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f"{key}.{note.name}", table.get(note.name)
        if isinstance(note, IterableValidationNote):
            return f"{key}[{note.index}]" if isinstance(note.index, int) else f"{key}.{note.index}", table[note.index]
    return key, table


def _expected_of(error: BaseValidationError, name: str) -> str | None:
    cls = getattr(error, "cl", None)
    if cls is None:
        return None
    field = attrs.fields_dict(attrs.resolve_types(cls)).get(name)
    return describe(field.type) if field else None


def _unknown_keys(error: ForbiddenExtraKeysError, key: str) -> list[Fault]:
    known = [field.name for field in attrs.fields(error.cl)]
    return [unknown_key(f"{key}.{extra}", extra, known) for extra in sorted(error.extra_fields)]
