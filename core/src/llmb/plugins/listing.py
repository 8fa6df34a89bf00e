"""All installed plugins, with what each implements or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmb.plugins.find import FoundPlugin, find_plugins
from llmb.plugins.load import choose, load
from llmb.values.errors import PluginError


def list_plugins() -> list[dict[str, Any]]:
    """One table a plugin: name, kind, distribution, version, hooks, error (null where it works)."""
    installed = find_plugins()
    return [_described(plugin, installed) for plugin in installed]


def _described(plugin: FoundPlugin, installed: Sequence[FoundPlugin]) -> dict[str, Any]:
    hooks: tuple[str, ...] = ()
    error = None
    try:
        hooks = load(plugin).hooks
        choose(plugin.kind, plugin.name, installed)
    except PluginError as fault:
        error = str(fault)
    return {
        "name": plugin.name,
        "kind": plugin.kind,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "hooks": list(hooks),
        "error": error,
    }
