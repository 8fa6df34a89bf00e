"""A mapping that cannot be changed, and a name for a value's content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, TypeVar

import attrs

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)
W = TypeVar("W")


class FrozenMap(Mapping[K, V_co]):
    """A read-only, hashable mapping (``attrs.frozen`` does not freeze a ``dict`` held in a field).

    Its hash is that of its items, so the values must be hashable for the map to be. ``|`` makes a new one, as of a
    ``dict``; `with_paths` makes plain tables and lists of what lies within.
    """

    __slots__ = ("_deep", "_items")

    def __init__(self, items: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = (), *, deep: bool = False) -> None:
        """``deep``: all that lies in the items is frozen too, as `freeze` leaves it."""
        self._items: dict[K, V_co] = dict(items)
        self._deep = deep

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> ItemsView[K, V_co]:
        """The dict's own view: a log has as many figures as lines, and each is looked at."""
        return self._items.items()

    def values(self) -> ValuesView[V_co]:
        """As `items`, for the same reason."""
        return self._items.values()

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    @property
    def deep(self) -> bool:
        """Whether all that lies in the items is known to be frozen too."""
        return self._deep

    def __or__(self, other: Mapping[K, W]) -> FrozenMap[K, V_co | W]:
        return FrozenMap(chain(self.items(), other.items())) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[K, W]) -> FrozenMap[K, V_co | W]:
        return FrozenMap(chain(other.items(), self.items())) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


def freeze(value: Any) -> Any:
    """The same tables and arrays, as nothing that can be changed: ``dict`` to FrozenMap, ``list`` to tuple."""
    if isinstance(value, str | int | float):  # most are, and asking whether they are mappings takes longest
        return value
    if isinstance(value, FrozenMap) and value.deep:  # so it is with a value that is made from another
        return value
    if isinstance(value, Mapping):
        return FrozenMap(((key, freeze(item)) for key, item in value.items()), deep=True)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """What `freeze` was given, as JSON and TOML are written from: ``dict`` and ``list``."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    return [thaw(item) for item in value] if isinstance(value, tuple) else value


def frozen_fields(_cls: type, fields: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    """A ``field_transformer`` by which each field keeps what `freeze` makes of what it is given.

    A converter at each field would do the same, but a type checker would then let anything pass.
    """
    return [field if field.converter else field.evolve(converter=freeze) for field in fields]


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> FrozenMap[str, Any]:
    """Both tables; where both have a key, ``above`` counts, and tables are merged in turn."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return FrozenMap(both)


def content_key(*parts: str) -> str:
    """Twelve hexadecimal digits that name this content, the same on every machine and in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
