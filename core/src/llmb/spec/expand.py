"""Lists in a spec are a sweep: the product of recipe, gpu_type, dtype, gpus, and of every key of [sweep]."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import attrs

from llmb.spec.read import Document
from llmb.values.errors import Fault, SpecError

SWEPT_KEYS = ("recipe", "gpu_type", "dtype", "gpus")


@attrs.frozen
class Point:
    """One combination: tables without lists to expand, and how a swept key is written in the spec."""

    tables: dict[str, Any]
    written_as: dict[str, str]

    def written(self, key: str) -> str:
        """The key as the spec's author wrote it: ``workload.gpus[1]`` for the second of a list."""
        return self.written_as.get(key, key)


@attrs.frozen
class _Axis:
    key: tuple[str, ...]
    values: list[Any]
    written: str

    def choices(self) -> list[tuple[tuple[str, ...], Any, str]]:
        return [(self.key, value, f"{self.written}[{index}]") for index, value in enumerate(self.values)]


def expand(document: Document) -> list[Point]:
    """All combinations, the last key varying fastest. Raises SpecError for a sweep that is not lists."""
    base = {key: value for key, value in document.tables.items() if key not in ("sweep", "provenance")}
    axes = [*_workload_axes(document), *_sweep_axes(document)]
    return [_point(base, choice) for choice in itertools.product(*(axis.choices() for axis in axes))]


def _workload_axes(document: Document) -> Iterator[_Axis]:
    workload = document.tables.get("workload")
    if not isinstance(workload, dict):
        return
    for key in SWEPT_KEYS:
        value = workload.get(key)
        if isinstance(value, list):
            yield _axis(document, ("workload", key), value, f"workload.{key}")


def _sweep_axes(document: Document) -> Iterator[_Axis]:
    sweep = document.tables.get("sweep", {})
    if not isinstance(sweep, dict):
        raise SpecError(_fault(document, "sweep", "is not a table", 'a table such as "parallelism.tp" = [1, 2]'))
    for key, values in _flat(sweep):
        if not isinstance(values, list):
            raise SpecError(_fault(document, f"sweep.{key}", f"is {values!r}", "a list of values to try"))
        yield _axis(document, tuple(key.split(".")), values, f"sweep.{key}")


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Quoted and bare dotted keys mean the same: both are flattened to one dotted key."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _axis(document: Document, key: tuple[str, ...], values: list[Any], written: str) -> _Axis:
    if not values:
        raise SpecError(_fault(document, written, "is an empty list", "at least one value"))
    return _Axis(key, values, written)


def _point(base: dict[str, Any], choice: tuple[tuple[tuple[str, ...], Any, str], ...]) -> Point:
    tables = copy.deepcopy(base)
    written_as = {}
    for key, value, written in choice:
        table = tables
        for part in key[:-1]:
            below = table.setdefault(part, {})
            table = below if isinstance(below, dict) else {}
        table[key[-1]] = value
        written_as[".".join(key)] = written
    return Point(tables, written_as)


def _fault(document: Document, key: str, message: str, expected: str) -> Fault:
    return Fault(message=message, file=document.file_of(key), key=key, expected=expected)
