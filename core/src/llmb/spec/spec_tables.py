"""The tables of a workload spec, as their author wrote them. Nothing is interpreted here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.values.errors import Fault, SpecError
from llmb.values.frozen import FrozenMap, table_of
from llmb.values.workload import SourceMap


@attrs.frozen
class Document:
    """The tables of a spec, and for each key that an argument of `llmb.load` set, the argument.

    The keys of [sweep] are dotted, however the author wrote them. ``notes`` name what arguments override,
    ``errors`` are those of the overrides.
    """

    file: str | None
    tables: dict[str, Any]
    origins: dict[str, str] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    errors: list[Fault] = attrs.field(factory=list)

    @property
    def source_map(self) -> SourceMap:
        """The origin of each key."""
        return SourceMap(file=self.file, places=FrozenMap({key: (file, key) for key, file in self.origins.items()}))


def read_document(tables: Mapping[str, Any], *, file: str | None) -> Document:
    """Return a copy of the tables of a spec.

    Raise SpecError without tables, for the tables of a declared framework, or if a key is not a string.
    """
    if not tables:
        expected = "at least a [workload] and a [target] table"
        raise SpecError(Fault(message="the spec is empty", file=file, expected=expected))
    if {"command", "log"} <= tables.keys() and not {"workload", "target"} & tables.keys():
        expected = "a spec whose workload.recipe is the path of this file"
        raise SpecError(Fault(message="the file describes a framework", file=file, expected=expected))
    return Document(file, flatten_sweep(_copy(tables)))


def string_of(tables: Mapping[str, Any], name: str, key: str) -> str | None:
    """Return a value of a table, or None if it is missing or, which is reported elsewhere, not a string."""
    value = table_of(tables, name).get(key)
    return value if isinstance(value, str) else None


def leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the names of each key whose value is not a table, with its value."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each dotted key whose value is not a table, with its value."""
    return ((".".join(names), value) for names, value in leaves(table))


def flatten_sweep(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the tables with dotted keys in [sweep], in which quoted and bare dotted keys mean the same."""
    sweep = tables.get("sweep")
    return {**tables, "sweep": dict(flat(sweep))} if isinstance(sweep, dict) else tables


def with_value(table: dict[str, Any], names: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the table with a value at a dotted key; only the tables on the way are copied."""
    name, *below = names
    inner = table.get(name, {})
    if not below:
        return {**table, name: value}
    return {**table, name: with_value(inner, below, value)} if isinstance(inner, dict) else table


def _copy(value: Any) -> Any:
    """Return a copy in the types that TOML is read into: dict with string keys, and list."""
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise SpecError(Fault(message=f"invalid key {wrong[0]!r}", expected="a string"))
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value
