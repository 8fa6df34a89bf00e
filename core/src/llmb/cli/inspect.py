"""The commands that tell what is there."""

from __future__ import annotations

import json

import typer

from llmb.cli.main import app
from llmb.cli.run import AsJson


@app.command()
def plugins(as_json: AsJson = False) -> None:
    """List the installed plugins, each loaded on its own, with what is wrong with it."""
    from llmb.plugins.listing import list_plugins

    found = list_plugins()
    if as_json:
        typer.echo(json.dumps({"plugins": found}, indent=2))
        return
    from llmb.cli.results import print_plugins

    print_plugins(found)
