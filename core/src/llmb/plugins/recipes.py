"""Find and read the recipes that framework plugins ship, without importing a plugin."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from llmb.catalog.recipes import read_recipe
from llmb.plugins.find import FoundPlugin, find_plugins
from llmb.plugins.load import choose
from llmb.values.errors import Fault, RecipeError
from llmb.values.recipe import Recipe


def load_recipe(address: str) -> Recipe:
    """The recipe at ``framework/name`` or ``framework/name@release``. Raises RecipeError or PluginError."""
    framework, slash, name = address.partition("/")
    if not slash or not name:
        nearest = difflib.get_close_matches(address, recipe_addresses(), n=1, cutoff=0.4)
        raise RecipeError(
            Fault(
                message=f"recipe {address!r} is not an address",
                expected="framework/name, as `llmb recipes` lists them",
                nearest=nearest[0] if nearest else None,
            )
        )
    plugin = choose("framework", framework)
    file = dict(_files(plugin)).get(address)
    if file is None:
        known = [each for each, _ in _files(plugin)]
        nearest = difflib.get_close_matches(address, known, n=1)
        there = ", ".join(known) or "none"
        raise RecipeError(
            Fault(
                message=f"{plugin.who} has no recipe {address!r} (it has {there})",
                nearest=nearest[0] if nearest else None,
            )
        )
    return _read(file, address, framework)


def recipe_addresses() -> tuple[str, ...]:
    """The addresses of all recipes of all installed frameworks, sorted."""
    frameworks = [plugin for plugin in find_plugins() if plugin.kind == "framework"]
    return tuple(sorted({address for plugin in frameworks for address, _ in _files(plugin)}))


def _files(plugin: FoundPlugin) -> Iterator[tuple[str, Path]]:
    folder = plugin.folder
    if folder is None:
        return
    for file in sorted((folder / "recipes").glob("*.toml")):
        yield f"{plugin.name}/{file.name.removesuffix('.toml')}", file


def _read(file: Path, address: str, framework: str) -> Recipe:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(Fault(message=f"cannot be read: {error}", file=str(file))) from error
    return read_recipe(text, address=address, framework=framework, file=str(file))
