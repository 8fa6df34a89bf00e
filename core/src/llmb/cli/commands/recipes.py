"""``llmb recipes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import attrs
import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_framework, complete_recipe
from llmb.cli.options import AsJson, OptionsError, reject_combination, with_option_names


def recipes(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS", help="Show this recipe, with all its configurations.", autocompletion=complete_recipe
        ),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option("--framework", metavar="NAME", help="Only this framework.", autocompletion=complete_framework),
    ] = None,
    gpu_type: Annotated[
        str | None, typer.Option("--gpu-type", metavar="TYPE", help="Only configurations for this GPU type.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="D", help="Only configurations in this dtype.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", metavar="N", min=1, help="Only configurations for N GPUs.")
    ] = None,
    with_baseline: Annotated[
        bool, typer.Option("--with-baseline", help="Only configurations with published results.")
    ] = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a workload spec to start from.")] = False,
    with_schema: Annotated[
        bool, typer.Option("--schema", help="With --toml, begin with the line that names the JSON Schema, for editors.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the recipes, newest release first, or the published configurations of one recipe.

    Filters select configurations, and recipes that have any of them. All filters must match.
    """
    where = llmb.PointFilter(
        framework=framework, gpu_type=gpu_type, dtype=dtype, gpus=gpus, with_baseline=with_baseline
    )
    if as_toml or with_schema:
        given = attrs.asdict(where)
        others = {f"--{name.replace('_', '-')}": bool(value) for name, value in given.items()} | {"--json": as_json}
        _print_starter(address, as_toml=as_toml, with_schema=with_schema, others=others)
        return
    with with_option_names():
        if address is not None:
            _print_recipe(address, where, as_json=as_json)
        else:
            _print_recipes(where, as_json=as_json)


def _print_starter(address: str | None, *, as_toml: bool, with_schema: bool, others: Mapping[str, bool]) -> None:
    """Print a workload spec of a recipe. ``others`` are options that select another output."""
    for name, is_given in others.items():
        reject_combination({"--toml": as_toml, name: is_given})
        reject_combination({"--schema": with_schema, name: is_given})
    if not as_toml:
        raise OptionsError("--schema requires --toml")
    if address is None:
        raise OptionsError("--toml requires the ADDRESS of a recipe")
    start = "#:schema ./llmb.schema.json\n" if with_schema else ""
    output.print_text(start + llmb.starter_workload(address), newline=False)


def _print_recipes(where: llmb.PointFilter, *, as_json: bool) -> None:
    from llmb.cli.views.recipes import list_document, print_list

    found = llmb.list_recipes(where)
    if as_json:
        output.print_json(list_document(found))
    elif found:
        print_list(found)
    elif llmb.framework_names():
        has_filter = where != llmb.PointFilter()
        advice = "no recipe has such a configuration; `llmb recipes` lists all recipes"
        output.print_message(advice if has_filter else "the installed frameworks have no recipes")
    if not llmb.framework_names():
        packages = ", ".join(f"{package} ({name})" for name, package in llmb.plugin_packages().items())
        output.print_message(f"no framework is installed; packages with plugins: {packages}; pip install one")


def _print_recipe(address: str, where: llmb.PointFilter, *, as_json: bool) -> None:
    from llmb.cli.views.recipes import print_points, recipe_document

    recipe = llmb.load_recipe(address)
    found = where.narrow(recipe)
    if found is None:
        llmb.list_recipes(where)  # raises for an unknown name
    if as_json:
        output.print_json(recipe_document(found or attrs.evolve(recipe, points=())))
    elif found:
        print_points(found)
    else:
        output.print_message(f"{recipe.address} has no such configuration; `llmb recipes {address}` lists all")
