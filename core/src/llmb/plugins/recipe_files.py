"""The recipe files that framework plugins ship, found and read without importing a plugin."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from llmb.plugins.entry_points import PluginEntry, find_plugins
from llmb.plugins.load import choose
from llmb.recipes.read_recipe import read_recipe
from llmb.values.error_text import nearest_name, unknown_name
from llmb.values.errors import Fault, RecipeError
from llmb.values.recipe import Recipe


def load_recipe(address: str) -> Recipe:
    """Return the recipe at ``framework/name`` or ``framework/name@release``.

    Raise RecipeError if there is no such recipe or its file is invalid, and PluginError if the framework is not
    installed.
    """
    return find_recipe(address, find_plugins())


def find_recipe(address: str, installed: Sequence[PluginEntry]) -> Recipe:
    """Return a recipe like `load_recipe`, of these plugins."""
    framework, slash, name = address.partition("/")
    if not slash or not name:
        raise RecipeError(
            Fault(
                message=f"{address!r} is not the address of a recipe",
                expected="FRAMEWORK/NAME as listed by `llmb recipes`",
                nearest=nearest_name(address, addresses_of(installed), cutoff=0.4),
            )
        )
    plugin = choose("framework", framework, installed)
    files = dict(_files(plugin))
    if address not in files and (recipe := _default_release(address, files, framework)):
        return recipe
    if address not in files:
        raise RecipeError(unknown_name(f"{plugin} has no recipe {address!r}", address, files))
    return _read(files[address], address, framework)


def recipe_addresses() -> tuple[str, ...]:
    """Return the addresses of the recipes of all installed frameworks, sorted."""
    return addresses_of(find_plugins())


def addresses_of(installed: Sequence[PluginEntry]) -> tuple[str, ...]:
    """Return the addresses of the recipes of these plugins, sorted."""
    frameworks = [plugin for plugin in installed if plugin.kind == "framework"]
    return tuple(sorted({address for plugin in frameworks for address, _ in _files(plugin)}))


def _files(plugin: PluginEntry) -> Iterator[tuple[str, Path]]:
    folder = plugin.folder
    if folder is None:
        return
    for file in sorted((folder / "recipes").glob("*.toml")):
        yield f"{plugin.name}/{file.name.removesuffix('.toml')}", file


def _default_release(address: str, files: Mapping[str, Path], framework: str) -> Recipe | None:
    """Return the recipe without a release in its file name if the address names the release that the file states."""
    name, _, release = address.rpartition("@")
    unreleased = name in files and "@" not in name
    recipe = _read(files[name], address, framework) if unreleased else None
    return recipe if recipe and recipe.release == release else None


def _read(file: Path, address: str, framework: str) -> Recipe:
    shared = {each.name.removesuffix(".toml"): _text(each) for each in (file.parent / "shared").glob("*.toml")}
    return read_recipe(_text(file), address=address, framework=framework, file=str(file), shared=shared)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(Fault(message=f"cannot be read: {error}", file=str(file))) from error
