"""``llmb plugins``."""

from __future__ import annotations

from collections.abc import Sequence

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson

TITLES = ("kind", "name", "distribution", "version")


def plugins(as_json: AsJson = False) -> None:
    """List the installed plugins and their errors."""
    found = llmb.list_plugins()
    if as_json:
        output.print_json({"plugins": [each.as_dict() for each in found]})
    else:
        _print_plugins(found)


def _print_plugins(plugins: Sequence[llmb.PluginInfo]) -> None:
    """Print one line per plugin, with its hooks or its error."""
    from rich.text import Text

    from llmb.cli.views.tables import Column, print_table

    rows = []
    for plugin in plugins:
        error = Text(f"error: {plugin.error}", "red") if plugin.error else None
        rows.append((*(getattr(plugin, title) for title in TITLES), error or ", ".join(plugin.hooks)))
    print_table([*map(Column, TITLES), Column("hooks", wraps=20)], rows)
