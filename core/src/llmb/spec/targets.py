"""Targets: those that a spec or a command names, and those for runs whose target does not matter."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.paths import targets_file
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.registry import PluginRegistry
from llmb.spec.assemble_run import assemble_target
from llmb.spec.check_values import check_host_and_workdir, mount_key
from llmb.spec.decode import decode_options, decode_target, required_options
from llmb.spec.expand_sweep import Combination
from llmb.spec.follow_up_errors import meant_keys
from llmb.spec.key_hints import add_key_hint, merge_key_hints
from llmb.spec.latest_result import LatestResult
from llmb.spec.spec_tables import Document, string_of
from llmb.values.errors import Fault, LlmbError, PluginError, SpecError
from llmb.values.frozen import FrozenMap, table_of
from llmb.values.run import Target
from llmb.values.texts.error_text import invalid_value
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.toml_files import read_optional_toml
from llmb.values.workload import SourceMap

FROM_TARGET = "target"
"""The argument of `llmb.load` that errors name. The command line names its option instead."""


def name_target(document: Document, name: str) -> None:
    """Put the name of the user's target, which is not in the spec, into [target].

    A [target] with a scheduler describes another place, and is replaced. A [target] without one has keys for the named
    target, and is kept.
    """
    written = table_of(document.tables, "target")
    if "scheduler" in written:
        document.notes.append(f"target {name} replaces the spec's [target] ({', '.join(written)})")
        written = {}
    document.tables["target"] = {**written, "name": name}
    document.origins["target.name"] = FROM_TARGET


class NamedTargets:
    """The targets of the targets file, which is read when the first of them is needed."""

    def __init__(self, registry: PluginRegistry) -> None:
        self._registry = registry
        self._file = targets_file()
        self._known: dict[str, Any] | None = None
        self._merge = LatestResult(_merge)  # most combinations share their target

    def apply(self, combination: Combination) -> tuple[Combination, tuple[Fault, ...]]:
        """Return the combination with the keys of its named target added to [target], or the errors of the name."""
        target, name = table_of(combination.tables, "target"), string_of(combination.tables, "target", "name")
        if name is None:
            return combination, ()
        try:
            named = self._find(name)
        except SpecError as error:
            return combination, error.faults
        own, its = target.get("scheduler"), named.get("scheduler")
        if isinstance(own, str) and isinstance(its, str) and own != its:
            message = f"{name} in {self._file} has scheduler {its}, not {own}"
            return combination, (Fault(message=message, key="target.scheduler", expected=f'"{its}", or no name'),)
        merged, added = self._merge(named, target)
        places = {f"target.{key}": (str(self._file), f"{name}.{key}") for key in added}
        if target.keys() == {"name"}:  # a key that is missing should be in the named table
            places["target"] = str(self._file), name
        complete = attrs.evolve(
            combination,
            tables={**combination.tables, "target": merged},
            source_map=attrs.evolve(
                combination.source_map, places=FrozenMap({**combination.source_map.places, **places})
            ),
        )
        if "scheduler" in target or "scheduler" in named:
            return complete, ()
        similar = next((key for key in named if nearest_name(key, ["scheduler"])), None)
        message = f"no scheduler, but a key '{similar}'" if similar else "no scheduler"
        return complete, (Fault(message=message, file=str(self._file), key=name, expected='scheduler = "..."'),)

    def _find(self, name: str) -> dict[str, Any]:
        if self._known is None:
            self._known = read_optional_toml(self._file)
        named = self._known.get(name)
        if isinstance(named, dict):
            return named
        if named is not None:
            expected = f"a table [{name}] with a scheduler"
            raise SpecError(Fault(message=invalid_value(named), file=str(self._file), key=name, expected=expected))
        if name in plugin_names("scheduler", self._registry.installed):
            expected = f'scheduler = "{name}" in [target] of a spec, or a table [{name}] in {self._file}'
            message = f"{name!r} is a scheduler, not a target"
            raise SpecError(Fault(message=message, key="target.name", expected=expected))
        names = sorted(key for key, value in self._known.items() if isinstance(value, dict))
        message = f"unknown target {name!r}"
        if names:
            expected, nearest = f"one of {', '.join(names)} in {self._file}", nearest_name(name, names)
            raise SpecError(Fault(message=message, key="target.name", expected=expected, nearest=nearest))
        advice = f"add a table [{name}] with a scheduler to {self._file}"
        raise SpecError(Fault(message=f"{message}; {advice}", key="target.name"))


def _merge(named: Mapping[str, Any], target: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the table of a target over a named one, and the dotted keys that only the named one has.

    Tables of both, such as ``env``, are merged by key.
    """
    merged, added = {**named, **target}, [key for key in named if key not in target]
    for key, table in named.items():
        own = target.get(key)
        if isinstance(table, dict) and isinstance(own, dict):
            merged[key] = {**table, **own}
            added += (mount_key(each) if key == "mounts" else f"{key}.{each}" for each in table if each not in own)
    return merged, added


def load_target(table: Mapping[str, Any], registry: PluginRegistry) -> tuple[Target[Any], dict[str, Any]]:
    """Return a target, and its complete table with the keys of its named target.

    Raise SpecError with all errors, and PluginError if the scheduler is missing or broken.
    """
    stated = Combination(tables={"target": dict(table)}, source_map=SourceMap())
    combination, name_errors = NamedTargets(registry).apply(stated)
    complete = combination.tables["target"]
    errors = list(name_errors)
    target_table, _ = decode_target(complete, errors)
    if target_table is not None:
        scheduler = registry.scheduler(target_table.scheduler)
        options = decode_options(scheduler, complete, "target", errors)
        if not errors:
            return assemble_target(target_table, scheduler, options), complete
        hints = merge_key_hints(scheduler.key_hints, {})
        hinted = [add_key_hint(error, hints) for error in (*errors, *check_host_and_workdir(target_table))]
        meant = meant_keys(hinted, {"target": complete})
        errors = [error for error in hinted if error.key not in meant]
    raise SpecError(*map(combination.source_map.locate, errors))


def with_any_target(tables: Mapping[str, Any], registry: PluginRegistry) -> dict[str, Any]:
    """Return the tables with a target, without which no spec is resolved. Raise PluginError."""
    if not (schedulers := rank_schedulers(registry)):
        raise PluginError("no scheduler plugin is installed")
    return {"target": {"scheduler": next(iter(schedulers))}, **tables}


def rank_schedulers(registry: PluginRegistry, *, several_nodes: bool = False) -> dict[str, dict[str, str]]:
    """Return the installed schedulers, the best first, each with its required keys of [target] and their types.

    Schedulers for ``several_nodes`` come first, if the run needs them, and of these the ones with the fewest required
    keys.
    """
    ranked: list[tuple[bool, int, str, dict[str, str]]] = []
    for name in plugin_names("scheduler", registry.installed):
        try:
            scheduler = registry.scheduler(name)
            required = required_options(scheduler.options)
            ranked.append((several_nodes and scheduler.single_node, len(required), name, required))
        except LlmbError:
            ranked.append((True, 0, name, {}))  # broken; `llmb plugins` prints the error
    return {name: required for *_, name, required in sorted(ranked, key=lambda each: each[:3])}
