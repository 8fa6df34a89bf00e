"""``llmb recipes``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson, OptionsError, reject_combination


def recipes(
    address: Annotated[
        str | None, typer.Argument(metavar="ADDRESS", help="Show this recipe with all its configurations.")
    ] = None,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print a workload spec to start from.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the recipes, or the published configurations of one recipe."""
    reject_combination({"--toml": as_toml, "--json": as_json})
    if address is not None:
        _print_recipe(address, as_toml=as_toml, as_json=as_json)
    elif as_toml:
        raise OptionsError("--toml requires the ADDRESS of a recipe")
    else:
        _print_recipes(as_json=as_json)


def _print_recipes(*, as_json: bool) -> None:
    from llmb.cli.views.recipes import list_entry, print_list

    found = llmb.PluginRegistry().recipes()
    if as_json:
        output.print_json({"recipes": [list_entry(each) for each in found]})
    else:
        print_list(found)


def _print_recipe(address: str, *, as_toml: bool, as_json: bool) -> None:
    from llmb.cli.views.recipes import print_points, recipe_document, workload_toml

    recipe = llmb.load_recipe(address)
    if as_toml:
        output.print_text(workload_toml(recipe, _schedulers(recipe)), newline=False)
    elif as_json:
        output.print_json(recipe_document(recipe))
    else:
        print_points(recipe)


def _schedulers(recipe: llmb.Recipe) -> dict[str, dict[str, str]]:
    """Return the installed schedulers, the best first, each with its required keys of [target] and their types.

    Schedulers that could hold the recipe's first point come first, and among them those without required keys.
    """
    from llmb.spec.check import required_options
    from llmb.spec.resolve import known_accelerators

    pool, point = llmb.PluginRegistry(), recipe.points[0]
    accelerator = known_accelerators(pool).get(point.gpu_type)
    several_nodes = accelerator is not None and point.gpus > accelerator.gpus_per_node
    ranked: list[tuple[bool, int, str, dict[str, str]]] = []
    for name in {each.name for each in pool.installed if each.kind == "scheduler"}:
        try:
            scheduler = pool.scheduler(name)
            required = required_options(scheduler.options)
            ranked.append((several_nodes and scheduler.single_node, len(required), name, required))
        except llmb.LlmbError:
            ranked.append((True, 0, name, {}))  # broken; `llmb plugins` prints the error
    return {name: required for *_, name, required in sorted(ranked, key=lambda each: each[:3])}
