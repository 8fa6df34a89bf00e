"""Resolve a spec to its runs: expand the sweep, check each combination, and collect the errors of all."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from llmb.plugins.addresses import absolute_address, framework_of
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.registry import PluginRegistry
from llmb.spec.decode import add_hints
from llmb.spec.expand_sweep import Combination, expand, join_errors
from llmb.spec.follow_up_errors import keys_of
from llmb.spec.overrides import FROM_OVERRIDES
from llmb.spec.resolve_run import RunResolver
from llmb.spec.spec_tables import Document
from llmb.spec.targets import NamedTargets
from llmb.values.errors import Fault
from llmb.values.frozen import table_of
from llmb.values.texts.error_text import UNKNOWN_KEY
from llmb.values.workload import RunSpec, SourceMap, Workload
from llmb.version import VERSION


def resolve(
    document: Document, registry: PluginRegistry, *, any_target: bool = False
) -> tuple[Workload, tuple[Fault, ...]]:
    """Return a workload of the runs whose own values are valid, and the errors of the spec, each once.

    With ``any_target``, the nodes have the usual size of the GPU type, whatever the target is.
    """
    combinations, sweep_errors = expand(document)
    if "provenance" in document.tables and "workload.recipe" not in document.origins:
        combinations = [_with_recipe(each, registry.recorded_address) for each in combinations]
    folder = Path(document.file).parent if document.file else Path()
    combinations = [_with_recipe(each, lambda address: absolute_address(address, folder)) for each in combinations]
    errors = [*document.errors, *sweep_errors]
    suspects = {key.removeprefix("sweep.") for key in keys_of(errors)}
    if mixed := _mixed_frameworks(document, combinations):
        errors.append(mixed)
        suspects.add("framework")
        combinations = [_without_framework(each) for each in combinations]
    runs: list[RunSpec] = []
    resolver, targets = RunResolver(registry, any_target=any_target), NamedTargets(registry)
    schedulers = plugin_names("scheduler", registry.installed)
    for each in combinations:
        combination, name_errors = (each, ()) if _is_record(document) else targets.apply(each)
        found, run_errors = resolver.resolve(combination, suspects | {"target.name"} if name_errors else suspects)
        runs += found
        if found_errors := (*name_errors, *run_errors):
            hints = resolver.find_key_hints(combination.tables)
            hinted = add_hints(found_errors, combination.tables, schedulers, hints)
            errors += [_locate(error, combination.source_map) for error in hinted]
    errors = join_errors(errors, (each.source_map for each in combinations))
    if errors:
        errors = [*_newer_llmb(document), *errors, *_other_plugins(document, registry)]
    valid = () if document.errors else tuple(runs)  # an unreadable override may be meant for any of them
    return Workload(file=document.file, runs=valid, notes=tuple(document.notes)), tuple(errors)


def _newer_llmb(document: Document) -> list[Fault]:
    """Return an error if a newer llmb wrote this record, because the installed llmb may not know all its keys."""
    from packaging.version import InvalidVersion, Version  # only for records with errors

    writer: Any = table_of(document.tables, "provenance").get("llmb")
    try:
        is_newer = Version(writer) > Version(VERSION)
    except (InvalidVersion, TypeError):
        return []
    upgrade = "upgrade with `pip install --upgrade llmb`, or with `git pull` in a clone of llmb"
    message = f"llmb {writer} wrote this record, and this is llmb {VERSION}; {upgrade}"
    return [Fault(message=message, file=document.file)] if is_newer else []


def _other_plugins(document: Document, registry: PluginRegistry) -> Iterator[Fault]:
    """Yield an error for each plugin of another version than the one that wrote this record: it may have other keys."""
    installed = {entry.distribution: entry.version for entry in registry.installed}
    for name, version in table_of(table_of(document.tables, "provenance"), "plugins").items():
        if installed.get(name) != version:
            now = f"{installed[name]} is installed" if name in installed else "it is not installed"
            yield Fault(message=f"{name} {version} wrote this record, and {now}", file=document.file)


def _is_record(document: Document) -> bool:
    """Check whether a spec is a run's record. It has all keys of its target, whatever the targets file has today."""
    return "provenance" in document.tables and "target.name" not in document.origins


def _with_recipe(combination: Combination, rewrite: Callable[[str], str]) -> Combination:
    """Return the combination with the address that ``rewrite`` returns for its recipe."""
    written = combination.recipe
    if written is None or (address := rewrite(written)) == written:
        return combination
    workload = {**combination.tables["workload"], "recipe": address}
    return attrs.evolve(combination, tables={**combination.tables, "workload": workload})


def _locate(error: Fault, source_map: SourceMap) -> Fault:
    """Return the error with the file and the key as the author wrote them."""
    located = _with_quotes(source_map.locate(error))
    if error.message != UNKNOWN_KEY or error.file or not error.key:
        return located
    for swept, (file, place) in source_map.places.items():
        if swept.startswith(f"{error.key}.") and place.startswith("sweep."):  # only [sweep] may have it
            located = attrs.evolve(located, file=file, key=place)
            break
    return attrs.evolve(located, key=re.sub(r"\[\d+\]$", "", located.key or ""))  # unknown whatever its value


def _with_quotes(error: Fault) -> Fault:
    """Return the error of an override, with the quotes that it needs if TOML reads the value as a number.

    These quotes mean the same in a shell and in Python.
    """
    wants_text = error.expected in ("a string", "a non-empty string")
    wrong = re.fullmatch(r"invalid value ([\w.+-]+)", error.message)
    if not wrong or not wants_text or error.file != FROM_OVERRIDES or str(error.key).startswith("sweep."):
        return error
    return attrs.evolve(error, expected=f"a string: `'{error.key}=\"{wrong[1]}\"'`")


def _mixed_frameworks(document: Document, combinations: list[Combination]) -> Fault | None:
    frameworks = {framework_of(combination.recipe) for combination in combinations if combination.recipe}
    if len(frameworks) < 2 or not any("framework" in combination.tables for combination in combinations):
        return None
    return document.source_map.locate(
        Fault(
            message=f"the recipes have several frameworks ({', '.join(sorted(frameworks))})",
            key="framework",
            expected="one framework in a spec with a [framework] table",
        )
    )


def _without_framework(combination: Combination) -> Combination:
    tables = {name: table for name, table in combination.tables.items() if name != "framework"}
    return attrs.evolve(combination, tables=tables)
