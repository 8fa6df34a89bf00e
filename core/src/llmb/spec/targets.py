"""The targets file: named [target] tables in the user's configuration directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from llmb.paths import config_folder
from llmb.spec.expand import Point
from llmb.spec.read import read_toml
from llmb.values.errors import Fault, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.nearest import nearest_name


def targets_file() -> Path:
    """Where named targets are kept: ``targets.toml`` in the user's configuration directory."""
    return config_folder() / "targets.toml"


class NamedTargets:
    """Puts the keys of a named target below those that the spec itself states. The file is read when one is named."""

    def __init__(self) -> None:
        self._file = targets_file()
        self._known: dict[str, Any] | None = None

    def apply(self, point: Point) -> tuple[Point, tuple[Fault, ...]]:
        """The point with its whole [target], or what is wrong with the name."""
        target = point.tables.get("target")
        name = target.get("name") if isinstance(target, dict) else None
        if not isinstance(target, dict) or not isinstance(name, str):
            return point, ()
        try:
            named = self._named(name)
        except SpecError as error:
            return point, error.faults
        added = {key: value for key, value in named.items() if key not in target}
        places = {f"target.{key}": (str(self._file), f"{name}.{key}") for key in added}
        whole = attrs.evolve(
            point,
            tables={**point.tables, "target": {**target, **added}},
            written=attrs.evolve(point.written, places=FrozenMap({**point.written.places, **places})),
        )
        return whole, () if "scheduler" in target else self._without_scheduler(name, named)

    def _without_scheduler(self, name: str, named: dict[str, Any]) -> tuple[Fault, ...]:
        if "scheduler" in named:
            return ()
        return (Fault(message="has no scheduler", file=str(self._file), key=name, expected='scheduler = "..."'),)

    def _named(self, name: str) -> dict[str, Any]:
        if self._known is None:
            self._known = self._read()
        named = self._known.get(name)
        if isinstance(named, dict):
            return named
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
