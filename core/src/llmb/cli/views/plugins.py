"""Installed plugins as a table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

import llmb
from llmb.cli.views.tables import Column, print_table

TITLES = ("kind", "name", "distribution", "version")
HOOKS_WIDTH = 20
"""The least width of the column of hooks, in characters."""


def print_plugins(plugins: Iterable[llmb.PluginInfo]) -> None:
    """Print one line per plugin, with its hooks or its error."""
    rows = [
        (*(getattr(plugin, title) for title in TITLES), Text(plugin.error or "", "red") or ", ".join(plugin.hooks))
        for plugin in plugins
    ]
    print_table([*map(Column, TITLES), Column("hooks", wraps=HOOKS_WIDTH)], rows)
