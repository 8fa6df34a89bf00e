"""Find plugins by their metadata alone: nothing of a plugin is imported here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

import attrs

from llmb.hookspecs import KINDS

GROUPS = {f"llmb.{kind}s": kind for kind in KINDS}


@attrs.frozen(kw_only=True)
class PluginEntry:
    """An entry point: the word in the TOML, and the distribution that brings it.

    ``requires`` is what that distribution asks of ``llmb`` itself, such as ``<2,>=1``; empty where it states nothing.
    """

    name: str
    kind: str
    value: str
    distribution: str
    version: str
    requires: str = ""

    @property
    def who(self) -> str:
        """How messages name it: distribution and version."""
        return f"{self.distribution} {self.version}"

    @property
    def folder(self) -> Path | None:
        """The package that its module is, or is in; found without importing it, and null where there is none."""
        top, *below = self.value.partition(":")[0].strip().split(".")
        try:
            spec = find_spec(top)
        except (ImportError, ValueError):
            return None
        folder = _own_folder(spec)
        for name in below:
            if spec is None or not spec.submodule_search_locations:
                break
            # Not `find_spec`, which would import the packages above.
            spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
            if spec is not None:
                folder = _own_folder(spec) or (Path(spec.origin).parent if spec.origin else folder)
        return folder


def _own_folder(spec: ModuleSpec | None) -> Path | None:
    """The folder of a package; a module has none of its own."""
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def find_plugins() -> tuple[PluginEntry, ...]:
    """All installed plugins, sorted by kind, name and distribution; duplicates are all there."""
    found = {_describe(entry, distribution) for distribution, entries in _distributions() for entry in entries}
    return tuple(sorted(found, key=lambda plugin: (plugin.kind, plugin.name, plugin.distribution, plugin.version)))


def _distributions() -> Iterator[tuple[metadata.Distribution, list[metadata.EntryPoint]]]:
    """Those with plugins, as Python would import them: the first of a name on the path hides later ones.

    One whose metadata cannot be read is passed over, since it is anybody's, and no run may break by it.
    """
    seen = set()
    for distribution in metadata.distributions():
        try:
            entries = [entry for entry in distribution.entry_points if entry.group in GROUPS]
            name = distribution.name if entries else None
        except Exception:  # noqa: BLE001, S112  # importlib.metadata raises what its parsers happen to raise
            continue
        if not name or (normal := re.sub(r"[-_.]+", "-", name).lower()) in seen:
            continue
        seen.add(normal)
        yield distribution, entries


def _describe(entry: metadata.EntryPoint, distribution: metadata.Distribution) -> PluginEntry:
    return PluginEntry(
        name=entry.name,
        kind=GROUPS[entry.group],
        value=entry.value,
        distribution=distribution.name,
        version=distribution.version or "of no version",
        requires=_asked_of_llmb(distribution.requires or ()),
    )


def _asked_of_llmb(requirements: Iterable[str]) -> str:
    if not any(text.lower().startswith("llmb") for text in requirements):
        return ""
    from packaging.requirements import InvalidRequirement, Requirement  # heavy, and few distributions get here

    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name.lower() == "llmb" and (requirement.marker is None or requirement.marker.evaluate()):
            return str(requirement.specifier)
    return ""
