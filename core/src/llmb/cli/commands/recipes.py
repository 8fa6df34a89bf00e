"""``llmb recipes``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.completion import complete_recipe
from llmb.cli.options import AsJson, OptionsError, reject_combination


def recipes(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS", help="Show this recipe, with all its configurations.", autocompletion=complete_recipe
        ),
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
    from llmb.cli.views.recipes import list_document, print_list

    found = llmb.list_recipes()
    if as_json:
        output.print_json(list_document(found))
    else:
        print_list(found)


def _print_recipe(address: str, *, as_toml: bool, as_json: bool) -> None:
    from llmb.cli.views.recipes import print_points, recipe_document

    if as_toml:
        output.print_text(llmb.starter_workload(address), newline=False)
    elif as_json:
        output.print_json(recipe_document(llmb.load_recipe(address)))
    else:
        print_points(llmb.load_recipe(address))
