"""A workload spec to its runs: read, expanded, checked against recipe, plugins and accelerator; all faults at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.spec.doubt import keys_of
from llmb.spec.expand import Combination, expand
from llmb.spec.hints import with_hints
from llmb.spec.read import Document
from llmb.spec.resolve import Resolver
from llmb.spec.targets import NamedTargets
from llmb.spec.trial import Trial
from llmb.values.error_text import NOT_A_KEY
from llmb.values.errors import Fault, SpecError
from llmb.values.workload import RunSpec, SourceMap, Workload

Ask = Callable[[Trial, PluginRegistry], Iterable[Fault]]
"""What the plugins refuse of a trial; the engine alone calls their hooks."""


def resolve_document(document: Document, pool: PluginRegistry, ask: Ask | None = None) -> Workload:
    """All runs of a document. Raises SpecError with every fault found.

    Where there is a fault, ``ask`` adds those of the plugins; else they are asked when the runs are planned.
    """
    combinations, wrong_sweep = expand(document)
    faults = [*document.faults, *wrong_sweep]
    doubt = {key.removeprefix("sweep.") for key in keys_of(wrong_sweep)}
    if mixed := _mixed_frameworks(document, combinations):
        faults.append(mixed)
        combinations = [_without_framework(combination) for combination in combinations]
    runs: list[RunSpec] = []
    trials: list[Trial] = []
    resolver, targets = Resolver(pool), NamedTargets()
    schedulers = sorted({each.name for each in pool.installed if each.kind == "scheduler"})
    for combination in combinations:
        whole, unnamed = (combination, ()) if _is_record(document) else targets.apply(combination)
        found = resolver.resolve(whole.tables, whole.source_map, doubt | keys_of(unnamed))
        runs += [attrs.evolve(each, swept=whole.swept) for each in found.runs]
        trials += [found.trial] if found.trial else []
        told = with_hints((*unnamed, *found.faults), whole.tables, schedulers)
        faults += [_located(each, whole.source_map) for each in told]
    if faults:
        trials += [Trial(runs=(each.run,), target=each.target, source_map=each.source_map) for each in runs]
        faults += [fault for trial in trials for fault in (ask(trial, pool) if ask else ())]
        raise SpecError(*dict.fromkeys(faults))
    return Workload(file=document.file, runs=tuple(runs), notes=tuple(document.notes))


def _is_record(document: Document) -> bool:
    """A run's own spec holds all keys of its target already, and need not be where that name is known."""
    return "provenance" in document.tables and "target.name" not in document.origins


def _located(fault: Fault, source_map: SourceMap) -> Fault:
    located = source_map.locate(fault)
    if fault.message != NOT_A_KEY or fault.file or not fault.key:
        return located
    for key, (file, place) in source_map.places.items():  # a table that only a key of [sweep] makes stands there alone
        if key.startswith(f"{fault.key}.") and place.startswith("sweep."):
            located = attrs.evolve(located, file=file, key=place)
            break
    # of a swept key all values are wrong, not one of them
    return attrs.evolve(located, key=re.sub(r"\[\d+\]$", "", located.key or ""))


def _mixed_frameworks(document: Document, combinations: list[Combination]) -> Fault | None:
    frameworks = {combination.recipe.partition("/")[0] for combination in combinations if combination.recipe}
    if len(frameworks) < 2 or not any("framework" in combination.tables for combination in combinations):
        return None
    return document.source_map.locate(
        Fault(
            message=f"the recipes are of several frameworks ({', '.join(sorted(frameworks))})",
            key="framework",
            expected="one framework in a spec with a [framework] table",
        )
    )


def _without_framework(combination: Combination) -> Combination:
    return attrs.evolve(
        combination, tables={name: table for name, table in combination.tables.items() if name != "framework"}
    )
