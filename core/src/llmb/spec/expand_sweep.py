"""Expand the lists of a spec into the product of recipe, gpu_type, dtype, gpus and every key of [sweep]."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from llmb.spec.spec_tables import Document, flat, string_of, with_value
from llmb.spec.workload_tables import SWEPT_KEYS, TABLES, nearest_key
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, table_of
from llmb.values.texts.error_text import format_value, invalid_value
from llmb.values.types.numbers import LARGEST
from llmb.values.workload import SourceMap

MAX_RUNS = 10_000
"""The limit of one workload. More is a mistake in a list or in repeats: each run costs a record, a job and 80 kB."""

KeyLocation = tuple[str | None, str]
"""A file (or the option of a command), and a key in it."""


@attrs.frozen
class Combination:
    """One combination: tables without lists to expand, the origin of each key, and the values of the swept keys."""

    tables: dict[str, Any]
    source_map: SourceMap
    swept: Mapping[str, Any] = attrs.field(factory=FrozenMap)

    @property
    def recipe(self) -> str | None:
        """The recipe's address; None if it is missing or not a string."""
        return string_of(self.tables, "workload", "recipe")


def expand(document: Document) -> tuple[list[Combination], list[Fault]]:
    """Return all combinations, the last key varying fastest, and the errors of the sweep itself.

    A key of [sweep] with an error is left out of the product, so that the rest can still be checked. There are no
    combinations if the product has more than MAX_RUNS runs.
    """
    base = {key: value for key, value in document.tables.items() if key not in ("sweep", "provenance")}
    stated = {key for key, _ in flat(base)}
    workload = table_of(base, "workload")
    lists = {key: workload[key] for key in SWEPT_KEYS if isinstance(workload.get(key), list) and workload[key]}
    axes = {f"workload.{key}": values for key, values in lists.items()}
    places = {key: key for key in axes}
    errors = [error for key, values in axes.items() for error in _list_errors(key, values)]
    sweep = document.tables.get("sweep", {})
    if not isinstance(sweep, dict):
        expected = 'a table such as "parallelism.tp" = [1, 2]'
        errors.append(Fault(message=invalid_value(sweep), key="sweep", expected=expected))
        sweep = {}
    for key, values in sweep.items():
        if error := _sweep_error(key, values, stated) or _overlap_error(key, axes):
            errors.append(error)
        else:
            axes[key], places[key] = values, f"sweep.{key}"
    combinations: list[Combination] = []
    if (runs := _count_runs(base, axes)) > MAX_RUNS:
        errors.append(Fault(message=f"the sweep has {runs:,} runs", key="workload", expected=f"at most {MAX_RUNS:,}"))
    else:
        choices = (_choices(key, values, places[key], document.source_map) for key, values in axes.items())
        combinations = [_combine(base, choice, document.source_map) for choice in itertools.product(*choices)]
    return combinations, [document.source_map.locate(error) for error in errors]


def _count_runs(base: dict[str, Any], axes: Mapping[str, list[Any]]) -> int:
    """Return the number of runs. Invalid repeats, which are reported elsewhere, count as one."""
    repeats = axes.get("workload.repeats", [table_of(base, "workload").get("repeats")])
    lengths = [len(values) for key, values in axes.items() if key != "workload.repeats"]
    return math.prod(lengths) * sum(map(_repeats, repeats))


def _repeats(value: Any) -> int:
    return value if isinstance(value, int) and 1 <= value <= LARGEST else 1


def _sweep_error(key: str, values: Any, stated: set[str]) -> Fault | None:
    written = f"sweep.{key}"
    above, _, last = key.rpartition(".")
    if above in ("", "sweep"):
        expected = 'a dotted key such as "parallelism.tp"'
        return Fault(message="invalid key", key=written, expected=expected, nearest=nearest_key(last))
    if not isinstance(values, list) or not values:
        return Fault(message=invalid_value(values), key=written, expected="a list with at least one value")
    if set_below := next((each for each in sorted(stated) if each == key or each.startswith(f"{key}.")), None):
        swept = "" if set_below == key else f", because {key} is swept"
        return Fault(message=f"{set_below} is both swept and set{swept}; remove one of them", key=written)
    if value := next((each for each in stated - TABLES.keys() if key.startswith(f"{each}.")), None):
        return Fault(message=f"{value} is not a table", key=written, expected='a dotted key such as "parallelism.tp"')
    return next(_list_errors(written, values), None)


def _overlap_error(key: str, others: Iterable[str]) -> Fault | None:
    """Return the error of a swept table if a key in it is swept too, or the reverse: one would replace the other."""
    for other in others:
        if key.startswith(f"{other}.") or other.startswith(f"{key}."):
            message = f"{key} and {other} are both swept, and one contains the other; remove one of them"
            return Fault(message=message, key=f"sweep.{key}")
    return None


def _list_errors(key: str, values: list[Any]) -> Iterator[Fault]:
    """Yield an error for None, which no record can contain, and for each value that would make the same run twice."""
    if None in values:
        yield Fault(message="None is listed", key=key, expected="values that TOML has")
    counts = Counter(map(repr, values))  # by repr, because 1 is not true, and tables have no hash
    for value in {repr(value): value for value in values}.values():
        if counts[repr(value)] > 1:
            message = f"{format_value(value)} is listed more than once; use workload.repeats to repeat runs"
            yield Fault(message=message, key=key)


def _choices(key: str, values: list[Any], place: str, origins: SourceMap) -> list[tuple[str, Any, KeyLocation]]:
    """Return a swept key with each of its values, and the place of the value in the list at ``place``."""
    file = origins.locate(Fault(message="", key=place)).file
    return [(key, value, (file, f"{place}[{index}]")) for index, value in enumerate(values)]


def _combine(base: dict[str, Any], choice: tuple[tuple[str, Any, KeyLocation], ...], origins: SourceMap) -> Combination:
    """Return the tables with these values. Tables without a swept key are shared by all combinations."""
    tables = base
    for key, value, _ in choice:
        tables = with_value(tables, key.split("."), value)
    places = FrozenMap({**origins.places, **{key: place for key, _, place in choice}}, deep=True)
    swept = FrozenMap((key, value) for key, value, _ in choice)
    return Combination(tables, SourceMap(file=origins.file, places=places), swept)


def join_errors(errors: Iterable[Fault], source_maps: Iterable[SourceMap]) -> list[Fault]:
    """Return the errors, each once. One that all values of a list share names the list instead of each value."""
    distinct = list(dict.fromkeys(errors))
    places = {place for source_map in source_maps for _, place in source_map.places.values()} if distinct else ()
    lengths = Counter(place.partition("[")[0] for place in places if "[" in place)
    shared = Counter(_without_index(error) for error in distinct)
    joined = (
        whole if shared[whole := _without_index(error)] == lengths[str(error.key).partition("[")[0]] > 1 else error
        for error in distinct
    )
    return list(dict.fromkeys(joined))


def _without_index(error: Fault) -> Fault:
    return attrs.evolve(error, key=re.sub(r"\[\d+\]", "", error.key, count=1)) if error.key else error
