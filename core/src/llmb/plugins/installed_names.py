"""Names of installed plugins and recipes, read from metadata alone: for the completion of a command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

GROUPS = ("llmb.frameworks", "llmb.schedulers", "llmb.extensions")


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
    """Return the names of the installed frameworks."""
    return sorted({point.name for point in metadata.entry_points(group="llmb.frameworks")})


def recipe_names() -> list[str]:
    """Return the addresses of recipes, as the names of their files give them. Check nothing."""
    return sorted({address for point in metadata.entry_points(group="llmb.frameworks") for address in _recipes(point)})


def _recipes(point: metadata.EntryPoint) -> Iterator[str]:
    try:
        spec = find_spec(point.module.partition(".")[0])
    except (ImportError, ValueError):
        return
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in Path(folder, "recipes").glob("*.toml"):
            yield f"{point.name}/{file.name.removesuffix('.toml')}"
