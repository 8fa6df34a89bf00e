"""Copy a frozen value with other values of some fields."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs

T = TypeVar("T")


def with_changes(value: T, **changes: Any) -> T:
    """Return a copy of an attrs value with other values of some fields, like `attrs.evolve` but faster.

    The class has `typed_fields` and no ``__attrs_post_init__``. Only the changed fields are converted, because the
    others are those of a valid value. All validators run. Raise TypeError for a name that is no field.
    """
    cls: type = type(value)
    converters = _converters(cls)
    if unknown := changes.keys() - converters.keys():
        raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
    copy: Any = object.__new__(cls)
    for name, convert in converters.items():
        item = convert(changes[name]) if name in changes else getattr(value, name)
        object.__setattr__(copy, name, item)  # because frozen classes forbid assignments
    attrs.validate(copy)
    return cast("T", copy)


@functools.cache
def _converters(cls: type) -> Mapping[str, Callable[[Any], Any]]:
    return {field.name: field.converter for field in attrs.fields(cls)}
