"""Check values by the type annotations of attrs classes: TOML tables, and the arguments of constructors.

The types are those of the modules beside this one, ``Literal``, lists (``tuple[T, ...]`` and others),
``Mapping[K, V]``, attrs classes, unions of these, and ``Any``. Values keep their types, with these exceptions: lists
become tuples, tables become FrozenMap or the attrs class, integers become float, and durations become seconds.
"""

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from llmb.values.errors import Fault, RecipeError, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.texts.error_text import REQUIRED_KEY, format_value, unknown_key, with_article
from llmb.values.types.value_type import BUILT_IN, InvalidValueError, ValueType, accepting, with_prefix

T = TypeVar("T")

LISTS: Mapping[Any, type] = {tuple: tuple, list: list, Sequence: tuple, set: set, frozenset: frozenset}
MAPPINGS = (Mapping, FrozenMap, dict)
_PLAIN = frozenset({str, int, float, bool})
_REJECTED = (ValueError, TypeError, SpecError)  # exceptions of validators


def decode(table: Any, cls: type[T], key: str) -> tuple[T | None, tuple[Fault, ...]]:
    """Return a TOML table as a value of an attrs class, or None and all errors, with their keys below ``key``."""
    try:
        return _from_table(table, cls), ()
    except InvalidValueError as error:
        return None, _below_key(error.errors, key)


def decode_fields(
    table: Any, cls: type, key: str, *, required: bool = True
) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Return the valid values of a TOML table by name, and the errors of the others, with their keys below ``key``.

    Without ``required``, missing keys are no errors.
    """
    values, errors = _decode_fields(table, cls, required=required)
    return values, _below_key(errors, key)


def _below_key(errors: Iterable[Fault], key: str) -> tuple[Fault, ...]:
    """Return errors with relative keys, such as ``.tp``, as those of a table at ``key``, which is empty for a file."""
    prefixed = with_prefix(key, errors)
    return prefixed if key else tuple(attrs.evolve(error, key=(error.key or "")[1:]) for error in prefixed)


def decode_settings(table: Any, cls: type[T], key: str) -> T:
    """Return a table of a recipe as a value of an attrs class. Raise RecipeError with all errors."""
    value, errors = decode(table, cls, key)
    if value is None:
        raise RecipeError(*errors)
    return value


def encode(value: Any) -> Any:
    """Return an attrs value as tables and lists. Fields that are None are left out, because TOML has no null."""
    if value is None or type(value) in _PLAIN:  # the most frequent types
        return value
    if attrs.has(type(value)):
        fields = {field.name: encode(getattr(value, field.name)) for field in attrs.fields(type(value))}
        return {name: item for name, item in fields.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def typed_fields(cls: type, fields: list["attrs.Attribute[Any]"]) -> list["attrs.Attribute[Any]"]:
    """Make each field accept values of its type alone, and freeze them: a ``field_transformer`` of attrs.

    A converter written at each field would do the same, but type checkers would then accept any value there.
    """
    return [field if field.converter else field.evolve(converter=_field_converter(cls, field)) for field in fields]


def _field_converter(cls: type, field: "attrs.Attribute[Any]") -> Callable[[Any], Any]:
    """Return a converter that finds the field's type when it is first called: the class is not complete yet."""
    field_type: ValueType | None = None

    def check(value: Any) -> Any:
        nonlocal field_type
        if field_type is None:
            field_type = value_type(_hints(cls)[field.name], of_python=True)
        try:
            return field_type.convert(value)
        except InvalidValueError as error:
            raise InvalidValueError(*with_prefix(f"{cls.__name__}.{field.name}", error.errors)) from None

    check.__annotations__["value"] = field.type  # what help() shows for the argument of the constructor
    return check


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls, include_extras=True)


@functools.cache
def value_type(kind: Any, *, of_python: bool = False) -> ValueType:
    """Return how values of an annotated type are described and checked.

    An attrs class is described as a table, or with ``of_python`` by its name, because authors of plugins pass objects.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return ValueType("a string, a number, true or false, a list or a table", _any, unchanged=_PLAIN)
    if isinstance(kind, TypeVar):  # the options of a plugin
        return ValueType("any value", lambda value: value)
    if origin is Annotated:
        stated = [each for each in kind.__metadata__ if isinstance(each, ValueType)]
        return stated[-1] if stated else value_type(inner[0], of_python=of_python)
    if kind in BUILT_IN:
        return BUILT_IN[kind]
    if origin is Literal:
        return _literal(inner)
    if origin in (Union, types.UnionType):
        return _union(inner, of_python)
    return _container(kind, origin or kind, inner, of_python)


def _container(kind: Any, cls: Any, inner: tuple[Any, ...], of_python: bool) -> ValueType:
    if cls in LISTS:
        return _list(cls, inner or (Any, ...), of_python)
    if cls in MAPPINGS:
        return _mapping(*(value_type(each, of_python=of_python) for each in inner or (str, Any)))
    if attrs.has(cls):
        expected = with_article(cls.__name__) if of_python else "a table"
        return ValueType(expected, functools.partial(_from_table, cls=cls, expected=expected))
    raise TypeError(f"llmb cannot check values of the type {inspect.formatannotation(kind)}")


def _literal(choices: tuple[Any, ...]) -> ValueType:
    expected = " or ".join(map(format_value, choices))
    kinds = {type(choice) for choice in choices}  # because True == 1
    return accepting(expected, lambda value: type(value) in kinds and value in choices, schema={})


def _union(kinds: tuple[Any, ...], of_python: bool) -> ValueType:
    ordered = sorted(kinds, key=lambda kind: kind is float)  # float is last, so that integers stay integers
    members = {each: value_type(each, of_python=of_python) for each in ordered if each is not type(None)}
    only = next(iter(members.values())) if len(members) == 1 else None
    shown = sorted(members, key=lambda kind: {str: 1, int: 2, float: 3, bool: 4}.get(kind, 0))  # Python may reorder it
    expected = " or ".join(members[kind].expected for kind in shown if not (kind is int and float in kinds))
    unchanged = frozenset[type]().union(*(each.unchanged for each in members.values()))

    def convert(value: Any) -> Any:
        if type(value) in unchanged or (value is None and type(None) in kinds):
            return value
        if only:
            return only.convert(value)
        for each in members.values():
            with suppress(InvalidValueError):
                return each.convert(value)
        raise InvalidValueError.of(value, expected)

    return ValueType(expected, convert, unchanged=unchanged)


def _list(cls: Any, inner: tuple[Any, ...], of_python: bool) -> ValueType:
    has_any_length = cls is not tuple or Ellipsis in inner
    types_of_items = [value_type(each, of_python=of_python) for each in inner if each is not Ellipsis]
    item, make = types_of_items[0], LISTS[cls]
    expected = f"a list{'' if has_any_length else f' of {len(inner)}'}, each {item.expected}"
    fixed = None if has_any_length else types_of_items
    accepted = (list, tuple, set, frozenset) if make in (set, frozenset) else (list, tuple)

    def convert(value: Any) -> Any:
        if not isinstance(value, accepted) or (fixed is not None and len(fixed) != len(value)):
            raise InvalidValueError.of(value, expected)
        return make(_convert_items(value, fixed or item, "[{}]".format))

    return ValueType(expected, convert)


def _mapping(key: ValueType, item: ValueType) -> ValueType:
    expected = "a table" if item.convert is _any else f"a table, each value {item.expected}"

    def convert(value: Any) -> Any:
        if isinstance(value, FrozenMap) and (not value or (value.deep and item.convert is _any)):
            return value
        if not isinstance(value, Mapping):
            raise InvalidValueError.of(value, expected)
        names = list(value)
        keys = _convert_items(names, key, lambda index: f".{names[index]}")
        items = _convert_items(value.values(), item, lambda index: f".{names[index]}")
        return FrozenMap(zip(keys, items, strict=True), deep=True)

    return ValueType(expected, convert)


def _convert_items(
    values: Collection[Any], kinds: ValueType | Sequence[ValueType], key_of: Callable[[int], str]
) -> Collection[Any]:
    """Convert each item. Raise the errors of all items together; ``key_of`` returns the relative key of an item."""
    if isinstance(kinds, ValueType):
        if kinds.unchanged.issuperset(map(type, values)):  # most lists and tables of a sweep
            return values
        kinds = [kinds] * len(values)
    converted: list[Any] = []
    errors: list[Fault] = []
    for index, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        try:
            converted.append(kind.convert(value))
        except InvalidValueError as error:
            errors += with_prefix(key_of(index), error.errors)
    if errors:
        raise InvalidValueError(*errors)
    return converted


def _any(value: Any) -> Any:
    """Return a value of any type that both TOML and JSON have, frozen."""
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, list | tuple):
        return tuple(_convert_items(value, value_type(Any), "[{}]".format))
    if isinstance(value, Mapping):
        return value_type(Mapping[str, Any]).convert(value)
    raise InvalidValueError.of(value, value_type(Any).expected)


def _from_table(table: Any, cls: Any, expected: str = "a table") -> Any:
    """Return a table as a value of an attrs class. Raise the errors of all fields together."""
    if isinstance(table, cls):
        return table
    if not isinstance(table, Mapping):
        raise InvalidValueError.of(table, expected)
    values, errors = _decode_fields(table, cls)
    arguments = {field.alias: values[field.name] for field in attrs.fields(cls) if field.name in values}
    first_error: tuple[Fault, ...] = ()
    if not errors:
        try:
            return cls(**arguments)
        except _REJECTED as error:  # attrs stops at the first error, and does not name its field
            first_error = _errors_of(error)
    raise InvalidValueError(*((*errors, *_validator_errors(cls, arguments)) or first_error))


@functools.cache
def _fields(cls: Any) -> Mapping[str, tuple[ValueType, bool]]:
    """Return the type of each field, and whether the field is required."""
    hints, fields = _hints(cls), {}
    for field in attrs.fields(cls):
        if field.init:
            try:
                fields[field.name] = value_type(hints.get(field.name, Any)), field.default is attrs.NOTHING
            except TypeError as error:
                raise TypeError(f"{cls.__name__}.{field.name}: {error}") from error
    return fields


def _decode_fields(table: Any, cls: Any, *, required: bool = True) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Return the valid values of a table by name, and the errors of the others with relative keys."""
    if not isinstance(table, Mapping):
        return {}, InvalidValueError.of(table, "a table").errors
    fields = _fields(cls)
    values: dict[str, Any] = {}
    errors: list[Fault] = []
    for name, (kind, is_required) in fields.items():
        if name in table:
            try:
                values[name] = kind.convert(table[name])
            except InvalidValueError as error:
                errors += with_prefix(f".{name}", error.errors)
        elif required and is_required:
            errors.append(Fault(message=REQUIRED_KEY, key=f".{name}", expected=kind.expected))
    errors += (unknown_key(f".{name}", name, fields) for name in table if name not in fields)
    return values, tuple(errors)


def _validator_errors(cls: Any, arguments: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return the errors of all validators of these arguments, or none if a required argument is missing."""
    errors: list[Fault] = []
    with attrs.validators.disabled(), suppress(*_REJECTED):
        instance = cls(**arguments)
        for field in attrs.fields(cls):
            if field.validator and field.alias in arguments:
                try:
                    field.validator(instance, field, getattr(instance, field.name))
                except _REJECTED as error:
                    errors += with_prefix(f".{field.name}", _errors_of(error))
    return tuple(errors)


def _errors_of(error: Exception) -> tuple[Fault, ...]:
    """Return the errors of a validator, with relative keys. The keys of a SpecError are below the field."""
    if isinstance(error, InvalidValueError):
        return error.errors
    if isinstance(error, SpecError):
        return tuple(attrs.evolve(each, key=f".{each.key}" if each.key else None) for each in error.faults)
    return (Fault(message=str(error.args[0] if error.args else error)),)  # attrs adds more than the text to ``args``
