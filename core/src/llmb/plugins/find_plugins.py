"""Installed plugins and packs, found from their metadata. Nothing of them is imported here."""

import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

import attrs

from llmb.paths import config_folder
from llmb.plugins.addresses import is_file_address
from llmb.plugins.installed_names import GROUPS, package_folder, plugin_packages
from llmb.plugins.misspelt_groups import find_misspelt_groups
from llmb.values.errors import Fault, PluginError
from llmb.values.texts.error_text import unknown_name

PACK: Final = "pack"
"""The kind of a plugin that is only data: a folder with recipes, declared frameworks, accelerators or signatures."""


@attrs.frozen(kw_only=True)
class PluginEntry:
    """An entry point of an installed distribution: the name of a plugin in the TOML, and where its code is.

    ``requires`` holds the versions of llmb that the distribution accepts, such as ``<2,>=1``. It is empty if the
    distribution accepts any version. ``path`` is the file of a declared framework, or the folder of a pack that is not
    a distribution. It is empty for all others.
    """

    name: str
    kind: str
    value: str
    distribution: str
    version: str
    requires: str = ""
    path: str = ""

    def __str__(self) -> str:
        """Return the name of the plugin in messages, with its distribution and version."""
        return f"{self.kind} plugin {self.name!r} ({self.provider})"

    @property
    def provider(self) -> str:
        """The distribution and its version, or the path of a plugin that is data."""
        return self.path or f"{self.distribution} {self.version}"

    @functools.cached_property  # each recipe searches the folders of all packs
    def folder(self) -> Path | None:
        """The package that is or contains the module of the plugin, found without importing it; None if missing."""
        if self.path:
            return Path(self.path) if self.kind == PACK else None
        return package_folder(self.value)


def find_plugins() -> tuple[PluginEntry, ...]:
    """Return all installed plugins, duplicates included, sorted by kind, name and distribution.

    The user's configuration directory is a pack too, and each framework that a pack declares is a plugin.
    """
    entries = {*_entries(), *_users_pack()}
    packs = [entry for entry in entries if entry.kind == PACK]
    entries |= {framework for pack in packs for framework in declared_frameworks(pack)}
    return tuple(sorted(entries, key=lambda entry: (entry.kind, entry.name, entry.distribution, entry.version)))


USER: Final = "user"
"""The name of the pack in the user's configuration directory."""

PACK_CONTENT: Final = ("recipes", "frameworks", "accelerators.toml", "signatures.toml")
"""The folders and files of a pack."""


def _users_pack() -> Iterator[PluginEntry]:
    folder = config_folder()
    if any(os.path.exists(folder / name) for name in PACK_CONTENT):
        yield PluginEntry(name=USER, kind=PACK, value="", distribution="", version="", path=str(folder))


def declared_frameworks(pack: PluginEntry) -> Iterator[PluginEntry]:
    """Yield the frameworks that a pack declares, one for each file."""
    folder = pack.folder
    for file in sorted((folder / "frameworks").glob("*.toml")) if folder else ():
        yield attrs.evolve(_framework_file(file), distribution=pack.distribution, version=pack.version)


def _framework_file(file: Path) -> PluginEntry:
    """Return the framework that a file declares."""
    return PluginEntry(name=file.stem, kind="framework", value="", distribution="", version="", path=str(file))


def _entries() -> Iterator[PluginEntry]:
    """Yield the plugins of each distribution that Python would import: the first of a name on the path.

    A distribution with unreadable metadata is skipped. It may have nothing to do with llmb, and must not break a run.
    """
    seen = set()
    for distribution in metadata.distributions():
        try:
            points = [point for point in distribution.entry_points if point.group in GROUPS]
            entries = _describe(points, distribution) if points else []
            name = re.sub(r"[-_.]+", "-", entries[0].distribution).lower() if entries else ""
        except Exception:  # noqa: BLE001, S112  # importlib.metadata raises whatever its parsers raise
            continue
        if name and name not in seen:
            seen.add(name)
            yield from entries


def _describe(points: Sequence[metadata.EntryPoint], distribution: metadata.Distribution) -> list[PluginEntry]:
    """Describe the plugins of a distribution. Its name is empty if the metadata has none."""
    about, requires = distribution.metadata, _accepted_versions(tuple(distribution.requires or ()))
    name = about["Name"] if "Name" in about else ""  # noqa: SIM401  # its type has no get, and a missing key warns
    version = about["Version"] if "Version" in about else ""  # noqa: SIM401  # the same
    return [
        PluginEntry(
            name=point.name,
            kind=GROUPS[point.group],
            value=point.value,
            distribution=name,
            version=version or "without a version",
            requires=requires,
        )
        for point in points
    ]


@functools.cache  # a program with many registries finds the same plugins again
def _accepted_versions(requirements: tuple[str, ...]) -> str:
    """Return the version specifier of the requirement on llmb, or "" if no such requirement can be read."""
    if not any(text.lower().startswith("llmb") for text in requirements):
        return ""
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName  # heavy, and rarely needed
    from packaging.requirements import InvalidRequirement, Requirement

    for text in requirements:
        try:
            requirement = Requirement(text)
            if requirement.name.lower() == "llmb" and (requirement.marker is None or requirement.marker.evaluate()):
                return str(requirement.specifier)
        except (InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
            continue
    return ""


def plugin_names(kind: str, installed: Iterable[PluginEntry]) -> list[str]:
    """Return the names of the installed plugins of a kind, sorted."""
    return sorted({entry.name for entry in installed if entry.kind == kind})


def choose_entry(kind: str, name: str, installed: Sequence[PluginEntry]) -> PluginEntry:
    """Return the installed plugin of this kind and name. Raise PluginError if it does not exist, or exists twice.

    The name of a framework may also be the path of a file that declares it.
    """
    if kind == "framework" and is_file_address(name):
        return attrs.evolve(_framework_file(Path(name)), name=name)
    entries = [entry for entry in installed if (entry.kind, entry.name) == (kind, name)]
    if not entries:
        raise PluginError(_not_installed(kind, name, installed))
    if len(entries) > 1:
        providers = " and ".join(entry.provider for entry in entries)
        remedy = "remove" if any(entry.path for entry in entries) else "uninstall"
        raise PluginError(f"{kind} plugin {name!r} is provided by {providers}; {remedy} all except one")
    return entries[0]


def _not_installed(kind: str, name: str, installed: Sequence[PluginEntry]) -> Fault:
    """Describe a missing plugin.

    Name the distribution only of a plugin of this project: on an index, anyone may own a misspelt name.
    """
    message = f"{kind} plugin {name!r} is not installed"
    if others := {entry.kind for entry in installed if entry.name == name} - {"extension"}:
        message = f"{name!r} is a {others.pop()}, not a {kind}"
    elif misspelt := next((each for each in find_misspelt_groups() if each.name == name), None):
        group = next(group for group, each in GROUPS.items() if each == kind)
        provider = f"{misspelt.distribution} has it in the entry-point group {misspelt.group!r}"
        return Fault(message=f"{message}: {provider}", expected=group)
    elif package := plugin_packages().get(name):
        return Fault(message=f"{message}; the package {package} contains a plugin of this name")
    return unknown_name(message, name, plugin_names(kind, installed))
