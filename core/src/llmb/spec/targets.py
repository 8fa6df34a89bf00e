"""Where runs go: [target] tables with a name, in the user's configuration directory, and one without a workload."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from llmb.paths import config_folder
from llmb.plugins.call import decoding_options
from llmb.plugins.registry import PluginRegistry
from llmb.spec.assemble import assemble_target
from llmb.spec.check import TARGET_KEYS, check_options, check_target, place_faults
from llmb.spec.expand import Combination
from llmb.spec.read import read_toml
from llmb.values.error_text import shown
from llmb.values.errors import Fault, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.nearest import nearest_name
from llmb.values.run import Target
from llmb.values.workload import SourceMap


def targets_file() -> Path:
    """Where named targets are kept: ``targets.toml`` in the user's configuration directory."""
    return config_folder() / "targets.toml"


class NamedTargets:
    """Puts the keys of a named target below those that the spec itself states. The file is read when one is named."""

    def __init__(self) -> None:
        self._file = targets_file()
        self._known: dict[str, Any] | None = None

    def apply(self, combination: Combination) -> tuple[Combination, tuple[Fault, ...]]:
        """The combination with its whole [target], or what is wrong with the name."""
        target = combination.tables.get("target")
        name = target.get("name") if isinstance(target, dict) else None
        if not isinstance(target, dict) or not isinstance(name, str):
            return combination, ()
        try:
            named = self._named(name)
        except SpecError as error:
            return combination, error.faults
        own, its = target.get("scheduler"), named.get("scheduler")
        if isinstance(own, str) and isinstance(its, str) and own != its:
            return combination, (self._of_another_scheduler(name, own, its),)
        added = {key: value for key, value in named.items() if key not in target}
        places = {f"target.{key}": (str(self._file), f"{name}.{key}") for key in added}
        whole = attrs.evolve(
            combination,
            tables={**combination.tables, "target": {**target, **added}},
            source_map=attrs.evolve(
                combination.source_map, places=FrozenMap({**combination.source_map.places, **places})
            ),
        )
        return whole, () if "scheduler" in target else self._without_scheduler(name, named)

    def _without_scheduler(self, name: str, named: dict[str, Any]) -> tuple[Fault, ...]:
        if "scheduler" in named:
            return ()
        return (Fault(message="has no scheduler", file=str(self._file), key=name, expected='scheduler = "..."'),)

    def _of_another_scheduler(self, name: str, own: str, its: str) -> Fault:
        message = f"is {shown(own)}, and {name} in {self._file} has {shown(its)}"
        return Fault(message=message, key="target.scheduler", expected=f"{shown(its)}, or no name")

    def _named(self, name: str) -> dict[str, Any]:
        if self._known is None:
            self._known = self._read()
        named = self._known.get(name)
        if isinstance(named, dict):
            return named
        if named is not None:
            expected = f"a table [{name}] with a scheduler"
            raise SpecError(Fault(message=f"is {shown(named)}", file=str(self._file), key=name, expected=expected))
        names = sorted(key for key, value in self._known.items() if isinstance(value, dict))
        raise SpecError(
            Fault(
                message=f"there is no target {name!r} in {self._file}",
                key="target.name",
                expected=f"one of {', '.join(names)}" if names else f"a table [{name}] with a scheduler in that file",
                nearest=nearest_name(name, names),
            )
        )

    def _read(self) -> dict[str, Any]:
        try:
            return read_toml(self._file)
        except SpecError as error:
            if isinstance(error.__context__, FileNotFoundError):
                return {}
            raise


def load_target(table: Mapping[str, Any], pool: PluginRegistry) -> tuple[Target[Any], dict[str, Any]]:
    """The target, and its whole table with what the targets file says of a ``name`` in it.

    Raises SpecError with every fault, PluginError for a scheduler that is missing or does not work.
    """
    combination, unnamed = NamedTargets().apply(Combination(tables={"target": dict(table)}, source_map=SourceMap()))
    whole = combination.tables["target"]
    faults = list(unnamed)
    checked = check_target(whole, faults)
    options = None
    if checked is not None:
        own = {name: value for name, value in whole.items() if name not in TARGET_KEYS}
        scheduler = pool.scheduler(checked.scheduler)
        with decoding_options(scheduler):
            options, wrong = check_options(own, scheduler.options, "target", TARGET_KEYS)
        faults += wrong if options is not None else [*wrong, *place_faults(checked)]
    if checked is None or faults:
        raise SpecError(*map(combination.source_map.locate, faults))
    return assemble_target(checked, pool.scheduler(checked.scheduler), options), whole
