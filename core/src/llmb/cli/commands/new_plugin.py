"""``llmb new-plugin``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import OptionsError


def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in specs, such as my_trainer.")],
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="declared, framework, scheduler, extension or pack.")
    ] = "declared",
    log: Annotated[
        Path | None,
        typer.Option("--from", metavar="LOG", help="Log from which to propose the line of a declared framework."),
    ] = None,
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="Folder of the new file or project.", show_default=False)
    ] = Path(),
) -> None:
    """Write a new plugin to start from: a file, or a project that passes its contract tests."""
    chosen: Any = kind
    if kind not in llmb.PLUGIN_KINDS:
        expected, nearest = f"one of {', '.join(llmb.PLUGIN_KINDS)}", llmb.nearest_name(kind, llmb.PLUGIN_KINDS)
        message = f"invalid value {kind!r}"
        raise llmb.LlmbError(llmb.Fault(key="--kind", message=message, expected=expected, nearest=nearest))
    if log is not None and kind != "declared":
        raise OptionsError(f"--from requires --kind declared, not {kind}")
    for file in llmb.new_plugin(name, chosen, into, log=log):
        output.print_text(str(file))
