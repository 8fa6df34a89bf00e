"""A workload spec to its runs: read, expanded, checked against recipe, plugins and accelerator; all faults at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from llmb.plugins.pool import PluginPool
from llmb.spec.check import check_tables
from llmb.spec.expand import Point, expand
from llmb.spec.ids import new_run_id
from llmb.spec.read import Document, read_document
from llmb.spec.resolve import Resolver, UnresolvableError
from llmb.values.errors import Fault, SpecError
from llmb.values.workload import PlacedRun, Workload


def load(path: str | Path, *, overrides: Iterable[str] = (), target: str | None = None) -> Workload:
    """Load a workload spec.

    ``overrides`` are ``key=value`` with dotted keys, the value in TOML, else a string; ``target`` names a table of
    the targets file. Nothing is started and nothing is written. Raises SpecError with every fault found.
    """
    document = read_document(Path(path), overrides, target)
    return resolve_document(document, new_run_id, PluginPool())


def resolve_document(document: Document, run_id: Callable[[str], str], pool: PluginPool) -> Workload:
    """All runs of a document; ``run_id`` makes an id of a run's name. Raises SpecError with every fault found."""
    points = expand(document)
    faults = list(_mixed_frameworks(document, points))
    runs: list[PlacedRun] = []
    resolver = Resolver(pool, run_id)
    for point in points:
        found, wrong = _resolve_point(point, resolver)
        runs += found
        faults += [_as_written(fault, point, document) for fault in wrong]
    if faults:
        raise SpecError(*dict.fromkeys(faults))
    return Workload(file=document.file, runs=tuple(runs))


def _resolve_point(point: Point, resolver: Resolver) -> tuple[tuple[PlacedRun, ...], tuple[Fault, ...]]:
    tables, faults = check_tables(point.tables)
    if tables is None:
        return (), faults
    try:
        return resolver.resolve(tables), ()
    except UnresolvableError as error:
        return (), error.faults


def _as_written(fault: Fault, point: Point, document: Document) -> Fault:
    key = fault.key or ""
    return attrs.evolve(fault, key=point.written(key) or None, file=fault.file or document.file_of(key))


def _mixed_frameworks(document: Document, points: list[Point]) -> Iterable[Fault]:
    recipes = [_recipe_of(point) for point in points]
    frameworks = {recipe.partition("/")[0] for recipe in recipes if isinstance(recipe, str)}
    if "framework" in document.tables and len(frameworks) > 1:
        yield Fault(
            message=f"the recipes are of several frameworks ({', '.join(sorted(frameworks))})",
            file=document.file_of("framework"),
            key="framework",
            expected="one framework in a spec with a [framework] table",
        )


def _recipe_of(point: Point) -> Any:
    workload = point.tables.get("workload")
    return workload.get("recipe") if isinstance(workload, dict) else None
