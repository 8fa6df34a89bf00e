"""``llmb schema``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import reject_combination


def schema(
    of_targets: Annotated[
        bool, typer.Option("--targets-file", help="Print the schema of the targets file, targets.toml.")
    ] = False,
    of_recipe: Annotated[bool, typer.Option("--recipe", help="Print the schema of a recipe file.")] = False,
    of_framework: Annotated[
        bool, typer.Option("--framework-file", help="Print the schema of a declared framework.")
    ] = False,
    file: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write the schema to a file.", show_default=False)
    ] = output.STANDARD_OUTPUT,
) -> None:
    """Print the JSON Schema of a spec for the installed plugins, for editors."""
    import json

    files: dict[llmb.SchemaKind, bool] = {
        "targets file": of_targets,
        "recipe": of_recipe,
        "framework file": of_framework,
    }
    reject_combination({f"--{kind.replace(' ', '-')}": is_given for kind, is_given in files.items()})
    document = llmb.json_schema(next((kind for kind, is_given in files.items() if is_given), "spec"))
    output.write_file(file, json.dumps(document, indent=2) + "\n")
