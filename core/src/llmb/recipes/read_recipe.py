"""Read a recipe: TOML text to a checked `Recipe`. docs/recipes.md describes the file."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import attrs

from llmb.recipes.baselines import PointKey, PublishedRow, point_name, read_baselines
from llmb.recipes.expand_points import expand_points, point_key
from llmb.recipes.recipe_tables import RecipeTable
from llmb.recipes.releases import releases_of, select_release
from llmb.recipes.sizes import DEFAULT_DTYPES, check_sizes, flops_per_token, scaling_rule, sequence_length
from llmb.values.errors import Fault, LlmbError, RecipeError, located
from llmb.values.frozen import FrozenMap
from llmb.values.merge_tables import merge_tables
from llmb.values.recipe import Point, Recipe
from llmb.values.rules.model_rules import check_model
from llmb.values.texts.error_text import invalid_value
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.toml_files import parse_toml, read_text
from llmb.values.types.check_types import decode


def read_recipe(
    tables: Mapping[str, Any], *, address: str, framework: str, file: str, release: str | None = None
) -> Recipe:
    """Return the recipe in the tables of a file at one release; None means the last.

    The tables are those of `with_shared`. Raise RecipeError with all errors, which name ``file``.
    """
    releases = releases_of(tables, file)
    table, errors = decode(select_release(tables, release, file), RecipeTable, "")
    if table is None:
        raise RecipeError(*located(errors, file))
    recipe, errors = build_recipe(table, address=address, framework=framework, releases=releases)
    if recipe is None:
        raise RecipeError(*located(errors, file))
    return attrs.evolve(recipe, file=file)


def build_recipe(
    table: RecipeTable, *, address: str, framework: str, releases: tuple[str, ...] = ()
) -> tuple[Recipe | None, tuple[Fault, ...]]:
    """Return the recipe of a decoded file, or None and all errors."""
    if errors := (*check_sizes(table), *_check_window(table), *check_model(table.model)):
        return None, errors
    rows, row_errors = read_baselines(table)
    points, point_errors = expand_points(table, rows)
    if errors := (*point_errors, *row_errors) or tuple(_check_rows(rows, points)):
        return None, errors
    recipe = Recipe(
        address=address,
        framework=framework,
        release=table.release,
        releases=releases or (table.release,),
        description=table.description,
        source=table.source,
        model=table.model,
        seq_len=sequence_length(table),
        flop_formula=table.flop_formula,
        flops_per_token=flops_per_token(table),
        mfu_from=table.mfu_from,
        window=table.window,
        steps=table.steps,
        profile_steps=table.profile_steps,
        captured_steps=table.captured_steps,
        time_limit_s=table.time_limit,
        memory_gb=table.memory_gb,
        image=table.image,
        points=points,
        rule=None if table.points else scaling_rule(table, "any"),
        dtypes=() if table.points else table.dtypes or DEFAULT_DTYPES,
        settings=table.framework,
    )
    return recipe, ()


def _check_window(table: RecipeTable) -> Iterator[Fault]:
    if table.window != "last" and table.window[1] > table.steps:
        message = f"the window ends at step {table.window[1]} of {table.steps}"
        yield Fault(
            message=message, key="window", expected=f"at most {table.steps}, or {table.steps - 1} if steps begin at 0"
        )


def _check_rows(rows: Mapping[PointKey, Sequence[PublishedRow]], points: Sequence[Point]) -> Iterator[Fault]:
    """Yield an error for each baseline without a point."""
    known = {point_key(point): point_name(point_key(point)) for point in points}
    for key, (row, *_) in rows.items():
        if key not in known:
            nearest = nearest_name(point_name(key), known.values(), cutoff=0.4)
            message = f"{point_name(key)} is not a point of this recipe"
            yield Fault(message=message, key=f"{row.place}.gpus", nearest=nearest)


def read_shared(recipes: Path, error: type[LlmbError]) -> dict[str, str]:
    """Return the texts of the files that recipes of a folder share, by the path below ``shared`` without the suffix."""
    folder = recipes / "shared"
    files = sorted(folder.rglob("*.toml"))
    return {each.relative_to(folder).with_suffix("").as_posix(): read_text(each, error) for each in files}


@functools.lru_cache(maxsize=256)  # recipes share files
def parse_recipe(text: str, file: str) -> Mapping[str, Any]:
    """Parse the text of a recipe's file into tables. Raise RecipeError, which names the file."""
    return parse_toml(text, file, RecipeError)


def with_shared(tables: Mapping[str, Any], shared: Mapping[str, str], file: str) -> Mapping[str, Any]:
    """Return the tables of a recipe merged into those of its shared files, without the key ``shared``.

    The [[settings]] of a recipe are added to those of its shared files. ``shared`` has the texts of all shared files by
    name. Raise RecipeError for an unknown name.
    """
    names = tables.get("shared", [])
    if not isinstance(names, list):
        expected = "a list of names of shared files"
        raise RecipeError(Fault(message=invalid_value(names), file=file, key="shared", expected=expected))
    below: Mapping[str, Any] = FrozenMap()
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in shared:
            expected = f"one of {', '.join(sorted(shared))}" if shared else "a file shared/NAME.toml beside it"
            message, nearest = invalid_value(name), nearest_name(str(name), shared)
            error = Fault(message=message, file=file, key=f"shared[{index}]", expected=expected, nearest=nearest)
            raise RecipeError(error)
        path = str(PurePath(file).with_name("shared") / f"{name}.toml")
        below = _merge_files(below, parse_recipe(shared[name], path))
    return _merge_files(below, {key: value for key, value in tables.items() if key != "shared"})


def _merge_files(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    shared, own = below.get("settings"), above.get("settings")
    if isinstance(shared, list) and isinstance(own, list):
        above = {**above, "settings": [*shared, *own]}
    return merge_tables(below, above)
