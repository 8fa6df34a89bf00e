"""Mappings that cannot be changed, tables in tables, and keys that name the content of a value."""

import functools
import hashlib
import json
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any, TypeVar

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)
W = TypeVar("W")


class FrozenMap(Mapping[K, V_co]):
    """A read-only, hashable mapping (``attrs.frozen`` does not freeze a ``dict`` in a field).

    The map is hashable if its values are. ``|`` returns a new map, as it does for a ``dict``. `with_paths` returns
    plain tables and lists.
    """

    __slots__ = ("_items", "deep")

    def __init__(self, items: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = (), *, deep: bool = False) -> None:
        """Copy the items. ``deep`` states that everything in them is frozen too."""
        self._items: dict[K, V_co] = dict(items)
        self.deep = deep

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> ItemsView[K, V_co]:
        """Return the view of the dict, which is faster than that of Mapping: logs have a map for each line."""
        return self._items.items()

    def values(self) -> ValuesView[V_co]:
        """Return the view of the dict, for the same reason as `items`."""
        return self._items.values()

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, FrozenMap) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __or__(self, other: Mapping[K, W]) -> "FrozenMap[K, V_co | W]":
        return FrozenMap(chain(self.items(), other.items())) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[K, W]) -> "FrozenMap[K, V_co | W]":
        return FrozenMap(chain(other.items(), self.items())) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


def freeze(value: Any) -> Any:
    """Return a value with all ``dict`` as FrozenMap and all ``list`` as tuple."""
    if isinstance(value, str | int | float):  # the most frequent types; the check for mappings is the slowest
        return value
    if isinstance(value, FrozenMap) and value.deep:
        return value
    if isinstance(value, Mapping):
        return FrozenMap(((key, freeze(item)) for key, item in value.items()), deep=True)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def table_of(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table, or an empty one if it is missing or not a table."""
    table = tables.get(name)
    return table if isinstance(table, Mapping) else {}


@functools.lru_cache(maxsize=256)
def content_key(*parts: str) -> str:
    """Return twelve hexadecimal digits that name this content, the same on every machine and in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
