"""Names and folders of installed plugins, from metadata and file names alone: for the completion of a command line."""

import re
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from llmb.paths import config_folder

FRAMEWORKS, PACKS = "llmb.frameworks", "llmb.packs"
GROUPS = {FRAMEWORKS: "framework", "llmb.schedulers": "scheduler", "llmb.extensions": "extension", PACKS: "pack"}
"""The kind of the plugins in each group of entry points."""

_RECIPE_TABLE = re.compile(r"^\[recipes\.\"?([A-Za-z0-9._+-]+?)\"?\]", re.MULTILINE)
"""The beginning of a recipe in a declared framework with several recipes."""


def plugin_versions() -> dict[str, str]:
    """Return the version of each installed distribution with plugins, by its name."""
    points = [point for group in GROUPS for point in metadata.entry_points(group=group)]
    found = {point.dist.name: point.dist.version for point in points if point.dist}
    return dict(sorted(found.items()))


def plugin_packages() -> dict[str, str]:
    """Return the packages of this project that contain plugins, by the name of the plugin, installed or not.

    They are the extras of llmb itself: ``pip install "llmb[NAME]"`` installs one.
    """
    found = {}
    for requirement in metadata.requires("llmb") or ():
        package, _, extra = requirement.partition("; extra == ")
        if extra and package.startswith("llmb-"):
            found[extra.strip("'\"").replace("-", "_")] = re.split(r"[^\w-]", package)[0]
    return found


def framework_names() -> list[str]:
    """Return the names of the installed and declared frameworks."""
    installed = {point.name for point in metadata.entry_points(group=FRAMEWORKS)}
    return sorted(installed | {file.stem for folder in _packs() for file in folder.glob("frameworks/*.toml")})


def recipe_names() -> list[str]:
    """Return the addresses of recipes, as the names of their files give them. Check nothing."""
    found = {
        f"{point.name}/{file.name.removesuffix('.toml')}"
        for point in metadata.entry_points(group=FRAMEWORKS)
        if (folder := package_folder(point.value))
        for file in folder.glob("recipes/*.toml")
    }
    for folder in _packs():
        found |= {f"{each.parent.name}/{each.name.removesuffix('.toml')}" for each in folder.glob("recipes/*/*.toml")}
        found |= {name for each in folder.glob("frameworks/*.toml") for name in _declared(each)}
    return sorted(found)


def _declared(file: Path) -> Iterator[str]:
    """Yield the addresses of the recipes in a declared framework, by the headings of its tables."""
    try:
        names = _RECIPE_TABLE.findall(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return
    yield from (f"{file.stem}/{name}" for name in names or [file.stem])


def _packs() -> list[Path]:
    """Return the folders of packs, with the user's own."""
    installed = [package_folder(point.value) for point in metadata.entry_points(group=PACKS)]
    return [config_folder(), *filter(None, installed)]


def package_folder(value: str) -> Path | None:
    """Return the package that is or contains the module of an entry point, or None if it is missing. Import nothing."""
    top, *below = value.partition(":")[0].strip().split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    folder = _folder_of(spec)
    for name in below:
        if spec is None or not spec.submodule_search_locations:
            break
        # Not `find_spec`, which imports the parent packages.
        spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
        if spec is not None:
            folder = _folder_of(spec) or (Path(spec.origin).parent if spec.origin else folder)
    return folder


def _folder_of(spec: ModuleSpec | None) -> Path | None:
    """Return the folder of a package, or None for a module."""
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None
