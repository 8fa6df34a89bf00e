"""The recipe files that frameworks and packs ship, found and read without importing a plugin.

The file ``NAME.toml`` or ``NAME@LINE.toml`` contains one release line of a recipe: a release, and the fixes of it.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from llmb.plugins.addresses import is_file_address, split_address
from llmb.plugins.find_plugins import PACK, PluginEntry, choose_entry, find_plugins
from llmb.recipes.read_recipe import parse_recipe, read_recipe, read_shared, with_shared
from llmb.recipes.releases import ReleaseLine, choose_release, release_numbers, releases_of
from llmb.values.errors import Fault, RecipeError
from llmb.values.recipe import Recipe
from llmb.values.texts.error_text import unknown_name
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.toml_files import read_text
from llmb.values.types.check_arguments import check_arguments


class RecipeFiles:
    """The recipe files that one command reads. A file is read once, however many recipes share it."""

    def __init__(self) -> None:
        self._tables: dict[Path, Mapping[str, Any]] = {}
        self._read_shared = functools.cache(read_shared)

    def read(self, file: Path) -> Mapping[str, Any]:
        """Return the tables of a recipe, with those of the files that it shares. Raise RecipeError."""
        if file not in self._tables:
            tables = parse_recipe(read_text(file, RecipeError), str(file))
            shared = self._read_shared(file.parent, RecipeError)
            self._tables[file] = with_shared(tables, shared, str(file))
        return self._tables[file]


@check_arguments
def load_recipe(address: str) -> Recipe:
    """Return the recipe at ``framework/name`` (the newest release), ``framework/name@release`` or ``...@line``.

    Raise RecipeError if there is no such recipe or its file is invalid, and PluginError if the framework is not
    installed.
    """
    return find_recipe(address, find_plugins(), RecipeFiles())


def find_recipe(
    address: str, installed: Sequence[PluginEntry], recipe_files: RecipeFiles, *, recorded: bool = False
) -> Recipe:
    """Return a recipe like `load_recipe`, of these plugins.

    In a ``recorded`` run, an address that names no exact release means the oldest release that it fits. The record is
    older than the other releases of its recipe.
    """
    framework, name = split_address(address)
    if not framework or not (name or is_file_address(address)):
        raise RecipeError(_invalid_address(address, installed))
    plugin = choose_entry("framework", framework, installed)
    files = list(_files(plugin, installed))
    name, _, wanted = name.partition("@")
    any_release = f"{framework}/{name}"
    matching = [(each, file) for each, file in files if _name_of(each) == any_release]
    declared = _declared_recipes(plugin)
    of_file = [(any_release, plugin.path)] if name in declared else []
    _check_unique(any_release, [*matching, *of_file])
    if plugin.path and (name in declared or not matching):
        from llmb.plugins.declared.recipes import build_declared_recipe

        return build_declared_recipe(plugin, name)
    lines = [_read_line(each, file, recipe_files) for each, file in matching]
    oldest_first = sorted(lines, key=lambda line: release_numbers(line.releases[0]))
    found = choose_release(oldest_first, wanted, oldest=recorded)
    if found is None:
        known = [f"{any_release}@{release}" for line in lines for release in line.releases]
        known = known or [each for each, _ in files]
        if not known and plugin.folder:
            places = f"files NAME.toml in {plugin.folder / 'recipes'}, or in recipes/{plugin.name} of a pack"
            raise RecipeError(Fault(message=f"{plugin} has no recipes", expected=places))
        raise RecipeError(unknown_name(f"{plugin} has no recipe {address!r}", address, known))
    line, release = found
    only = len(lines) == 1 and not line.name and len(line.releases) == 1
    exact = any_release if only else f"{any_release}@{release}"
    tables = recipe_files.read(line.file)
    return read_recipe(tables, address=exact, framework=framework, file=str(line.file), release=release)


def _invalid_address(address: str, installed: Sequence[PluginEntry]) -> Fault:
    if address in {each.name for each in installed if each.kind == "framework"}:
        message = f"{address!r} is a framework, not the address of a recipe"
        return Fault(message=message, expected=f"an address that `llmb recipes --framework {address}` lists")
    return Fault(
        message=f"{address!r} is not the address of a recipe",
        expected="FRAMEWORK/NAME as listed by `llmb recipes`, or the path of a file that ends in .toml",
        nearest=nearest_name(address, addresses_of(installed), cutoff=0.4),
    )


def _declared_recipes(plugin: PluginEntry) -> tuple[str, ...]:
    """Return the names of the recipes that a framework's own file declares. Only such a file needs the import."""
    if not plugin.path:
        return ()
    from llmb.plugins.declared.recipes import declared_recipes

    return declared_recipes(plugin)


def _check_unique(name: str, places: Iterable[tuple[str, object]]) -> None:
    """Raise RecipeError if two files define one address."""
    found: dict[str, list[str]] = {}
    for address, file in places:
        found.setdefault(address, []).append(str(file))
    for files in found.values():
        if len(files) > 1:
            raise RecipeError(f"recipe {name!r} is defined in {' and '.join(files)}; remove all except one")


def recipe_addresses() -> tuple[str, ...]:
    """Return the addresses of the recipes of all installed frameworks, sorted."""
    return addresses_of(find_plugins())


def addresses_of(installed: Sequence[PluginEntry]) -> tuple[str, ...]:
    """Return the addresses of the recipes of these plugins, one for each release line, sorted.

    A declared framework that cannot be read has an address too, by which a command reports its error.
    """
    found: set[str] = set()
    for plugin in installed:
        if plugin.kind == "framework":
            found |= {address for address, _ in _files(plugin, installed)}
            found |= {f"{plugin.name}/{name}" for name in _declared_recipes(plugin)}
    return tuple(sorted(found))


def exact_addresses(installed: Sequence[PluginEntry]) -> Iterator[str]:
    """Yield every address that names a recipe: without a release, with a release line, with an exact release.

    A file that cannot be read has its release line alone.
    """
    recipe_files = RecipeFiles()
    for plugin in (each for each in installed if each.kind == "framework"):
        yield from (f"{plugin.name}/{name}" for name in _declared_recipes(plugin))
        for address, file in _files(plugin, installed):
            yield from (address, _name_of(address))
            with suppress(RecipeError):
                yield from (
                    f"{_name_of(address)}@{release}" for release in _read_line(address, file, recipe_files).releases
                )


def _read_line(address: str, file: Path, recipe_files: RecipeFiles) -> ReleaseLine:
    releases = releases_of(recipe_files.read(file), str(file))
    return ReleaseLine(address.partition("@")[2], file, releases)


def _name_of(address: str) -> str:
    return address.partition("@")[0]


def _files(plugin: PluginEntry, installed: Sequence[PluginEntry]) -> Iterator[tuple[str, Path]]:
    """Yield the address of each recipe of a framework, and its file: of the framework itself and of packs."""
    packs = [pack for pack in installed if pack.kind == PACK]
    folders = [plugin.folder and plugin.folder / "recipes"]
    folders += [pack.folder and pack.folder / "recipes" / plugin.name for pack in packs]
    for folder in filter(None, folders):
        for file in sorted(folder.glob("*.toml")):
            yield f"{plugin.name}/{file.name.removesuffix('.toml')}", file
