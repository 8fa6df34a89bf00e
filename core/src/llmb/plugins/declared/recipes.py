"""The recipes of a declared framework."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from llmb.plugins.declared.framework import as_image
from llmb.plugins.declared.read_file import LoadedFrameworkFile, read_file
from llmb.plugins.find_plugins import PluginEntry
from llmb.recipes.read_recipe import build_recipe
from llmb.values.errors import Fault, LlmbError, RecipeError, located
from llmb.values.frozen import FrozenMap
from llmb.values.recipe import Recipe, RecipeCopy
from llmb.values.texts.error_text import unknown_name

FOLDER = "framework"
"""The folder of a run's record with the file and the files that it names."""


def declared_recipes(plugin: PluginEntry) -> tuple[str, ...]:
    """Return the names of the recipes that a framework's own file declares; the framework's name if it is broken."""
    try:
        return tuple(read_file(Path(plugin.path)).recipes)
    except LlmbError:
        return (Path(plugin.path).stem,)


def build_declared_recipe(plugin: PluginEntry, name: str) -> Recipe:
    """Return a recipe of a framework's own file. Without a name, return the only one.

    Raise PluginError if the file is invalid, and RecipeError if there is no such recipe.
    """
    read = read_file(Path(plugin.path))
    chosen = name or (next(iter(read.recipes)) if len(read.recipes) == 1 else "")
    if chosen not in read.recipes:
        raise RecipeError(attrs.evolve(_missing(read, name), file=plugin.path))
    table = read.recipes[chosen]
    image, window = table.image or as_image(read.file.image), table.window or read.file.log.window
    own = f"{read.name}/{chosen}"
    table = attrs.evolve(table, image=image, window=window)
    recipe, errors = build_recipe(table, address=own, framework=plugin.name)
    if recipe is None:
        key = "recipe" if read.file.recipe else f"recipes.{chosen}"
        named = [attrs.evolve(error, key=f"{key}.{error.key}" if error.key else key) for error in errors]
        raise RecipeError(*located(named, plugin.path))
    return attrs.evolve(recipe, copy=_copy(read, chosen))


def _missing(read: LoadedFrameworkFile, name: str) -> Fault:
    if not read.recipes:
        expected = "a table [recipe], without which llmb can only parse logs"
        return Fault(message="required table is missing", key="recipe", expected=expected)
    if not name:
        message = f"the file has several recipes ({', '.join(read.recipes)})"
        return Fault(message=message, expected=f'"{read.path.name}#NAME" with one of these names')
    return unknown_name(f"no recipe {name!r}", name, read.recipes)


def _copy(read: LoadedFrameworkFile, recipe: str) -> RecipeCopy:
    files: Mapping[str, str] = {read.path.name: read.text, **read.texts}
    return RecipeCopy(
        address=f"./{FOLDER}/{read.path.name}#{recipe}",
        files=FrozenMap((f"{FOLDER}/{name}", text) for name, text in files.items()),
    )
