"""The releases of a recipe: their order, the one that an address means, and the fixes of a release."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from llmb.values.errors import Fault, RecipeError
from llmb.values.merge_tables import merge_tables
from llmb.values.recipe import Recipe
from llmb.values.texts.error_text import invalid_value
from llmb.values.types.check_arguments import check_arguments

FIXES = "fixes"
"""The table of a recipe file with the fixes of its first release, which its publisher made."""


@attrs.frozen
class ReleaseLine:
    """A recipe file: the part of its name after ``@``, and the exact releases in it, the oldest first."""

    name: str
    file: Path
    releases: tuple[str, ...]


def choose_release(lines: Sequence[ReleaseLine], wanted: str, *, oldest: bool) -> tuple[ReleaseLine, str] | None:
    """Return the line and the release that ``wanted`` names: an exact release, a line or, if empty, any line."""
    for line in lines:
        if wanted in line.releases:
            return line, wanted
    fitting = [line for line in lines if wanted in ("", line.name)]
    if not fitting:
        return None
    return (fitting[0], fitting[0].releases[0]) if oldest else (fitting[-1], fitting[-1].releases[-1])


def releases_of(tables: Mapping[str, Any], file: str) -> tuple[str, ...]:
    """Return the first release and its fixes, in the order of the file. Raise RecipeError if [fixes] is invalid."""
    return (str(tables.get("release", "")), *_fixes(tables, file))


def select_release(tables: Mapping[str, Any], release: str | None, file: str) -> Mapping[str, Any]:
    """Return the tables at one release; None means the last. Each fix is merged over the releases before it."""
    found: Mapping[str, Any] = {key: value for key, value in tables.items() if key != FIXES}
    for name, changes in _fixes(tables, file).items():
        if found.get("release") == release:
            break
        found = merge_tables(found, {**changes, "release": name})
    return found


def _fixes(tables: Mapping[str, Any], file: str) -> Mapping[str, Mapping[str, Any]]:
    fixes = tables.get(FIXES, {})
    if not isinstance(fixes, Mapping) or not all(isinstance(changes, Mapping) for changes in fixes.values()):
        expected = 'a table for each fix, such as [fixes."25.12.01"]'
        raise RecipeError(Fault(message=invalid_value(fixes), file=file, key=FIXES, expected=expected))
    return fixes


def newest_first(recipes: Iterable[Recipe]) -> list[Recipe]:
    """Sort recipes by release, the newest first, and recipes of one release by address."""
    by_address = sorted(recipes, key=lambda recipe: recipe.address)
    return sorted(by_address, key=lambda recipe: release_numbers(recipe.release), reverse=True)


def release_numbers(release: str) -> list[int]:
    """Return the numbers of a release, by which releases are ordered."""
    return [int(number) for number in re.findall(r"\d{1,99}", release)]  # int() reads no 5,000 digits


@check_arguments
def fold_releases(recipes: Iterable[Recipe]) -> list[tuple[Recipe, tuple[str, ...]]]:
    """Return the first recipe of each name with the releases of the others, in the order of the recipes."""
    by_name: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        by_name.setdefault(recipe.address.partition("@")[0], []).append(recipe)
    return [(newest, tuple(each.release for each in older)) for newest, *older in by_name.values()]
