"""Lists in a spec are a sweep: the product of recipe, gpu_type, dtype, gpus, and of every key of [sweep]."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from llmb.spec.names import nearest_key
from llmb.spec.read import Document, flat
from llmb.spec.scalars import SCALARS, PositiveInt, UnexpectedError
from llmb.values.error_text import shown
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.workload import SourceMap

SWEPT_KEYS = ("recipe", "gpu_type", "dtype", "gpus")

MOST_RUNS = 10_000
"""Of one workload: more is a slip of a list or of repeats, and each run costs a record, a job and 80 kB of memory."""

Place = tuple[str | None, str]
"""A file (or the option of a command), and a key in it."""


@attrs.frozen
class Combination:
    """One combination: tables without lists to expand, where their keys were written, and what the lists gave it."""

    tables: dict[str, Any]
    source_map: SourceMap
    swept: Mapping[str, Any] = attrs.field(factory=FrozenMap)

    @property
    def recipe(self) -> str | None:
        """The recipe's address, where one is stated."""
        workload = self.tables.get("workload")
        recipe = workload.get("recipe") if isinstance(workload, dict) else None
        return recipe if isinstance(recipe, str) else None


@attrs.frozen
class _Axis:
    """A key and its values; ``written`` is where their list stands, a file and a key."""

    key: str
    values: list[Any]
    written: Place

    def choices(self) -> list[tuple[str, Any, Place]]:
        file, key = self.written
        return [(self.key, value, (file, f"{key}[{index}]")) for index, value in enumerate(self.values)]


def expand(document: Document) -> tuple[list[Combination], list[Fault]]:
    """All combinations, the last key varying fastest, and what is wrong with the sweep itself.

    A key of [sweep] with a fault is left out of the product, so that the rest can still be looked at. Nothing is
    expanded where that would be more than MOST_RUNS runs.
    """
    base = {key: value for key, value in document.tables.items() if key not in ("sweep", "provenance")}
    stated = {key for key, _ in flat(base)}
    axes = [_axis(document, f"workload.{key}", value) for key, value in _listed(base)]
    faults = [document.source_map.locate(fault) for axis in axes for fault in _twice(axis.key, axis.values)]
    for key, values in _sweep(document, faults):
        if fault := _sweep_fault(key, values, stated):
            faults.append(document.source_map.locate(fault))
        else:
            axes.append(_axis(document, key, values, prefix="sweep."))
    if (runs := _count(base, axes)) > MOST_RUNS:
        fault = Fault(message=f"comes to {runs:,} runs", key="workload", expected=f"at most {MOST_RUNS:,}")
        return [], [*faults, document.source_map.locate(fault)]
    product = itertools.product(*(axis.choices() for axis in axes))
    return [_combination(base, choice, document.source_map) for choice in product], faults


def _count(base: dict[str, Any], axes: list[_Axis]) -> int:
    """How many runs these make. Repeats that are no number are told of elsewhere, and count as one."""
    workload = base.get("workload")
    repeats = [workload.get("repeats") if isinstance(workload, dict) else None]
    combinations = 1
    for axis in axes:
        if axis.key == "workload.repeats":
            repeats = axis.values
        else:
            combinations *= len(axis.values)
    return combinations * sum(_times(each) for each in repeats)


def _times(repeats: Any) -> int:
    try:
        return int(SCALARS[PositiveInt].take(repeats))
    except UnexpectedError:
        return 1


def _listed(base: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    workload = base.get("workload")
    if isinstance(workload, dict):
        yield from ((key, workload[key]) for key in SWEPT_KEYS if isinstance(workload.get(key), list) and workload[key])


def _sweep(document: Document, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    sweep = document.tables.get("sweep", {})
    if isinstance(sweep, dict):
        yield from sweep.items()
    else:
        fault = Fault(message="is not a table", key="sweep", expected='a table such as "parallelism.tp" = [1, 2]')
        faults.append(document.source_map.locate(fault))


def _sweep_fault(key: str, values: Any, stated: set[str]) -> Fault | None:
    written = f"sweep.{key}"
    above, _, last = key.rpartition(".")
    if above in ("", "sweep"):
        expected = 'a dotted key such as "parallelism.tp"'
        return Fault(message="is not a key to sweep", key=written, expected=expected, nearest=nearest_key(last))
    if not isinstance(values, list):
        return Fault(message=f"is {shown(values)}", key=written, expected="a list of values to try")
    if not values:
        return Fault(message="is an empty list", key=written, expected="at least one value to try")
    if key in stated:
        return Fault(message=f"is swept, and {key} is set too", key=written, expected="one of the two")
    return next(_twice(written, values), None)


def _twice(key: str, values: list[Any]) -> Iterator[Fault]:
    """Of a value that stands there again: the same run would be made again, under the same name."""
    counts = Counter(map(repr, values))  # 1 is not true, and tables have no hash
    for value in {repr(value): value for value in values}.values():
        if counts[repr(value)] > 1:
            expected = "each value once; workload.repeats runs all again"
            yield Fault(message=f"has {shown(value)} more than once", key=key, expected=expected)


def _axis(document: Document, key: str, values: list[Any], prefix: str = "") -> _Axis:
    place = document.source_map.locate(Fault(message="", key=prefix + key))
    return _Axis(key, values, (place.file, prefix + key))


def _combination(base: dict[str, Any], choice: tuple[tuple[str, Any, Place], ...], written: SourceMap) -> Combination:
    tables = copy.deepcopy(base)
    places = dict(written.places)
    for key, value, place in choice:
        *above, last = key.split(".")
        table = tables
        for part in above:
            below = table.setdefault(part, {})
            table = below if isinstance(below, dict) else {}
        table[last] = value
        places[key] = place
    swept = FrozenMap((key, value) for key, value, _ in choice)
    return Combination(tables, attrs.evolve(written, places=FrozenMap(places)), swept)
