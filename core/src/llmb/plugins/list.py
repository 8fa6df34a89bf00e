"""All installed plugins, with what each implements or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from llmb.plugins.find import PluginEntry, find_plugins
from llmb.plugins.load import choose, load
from llmb.values.errors import PluginError


@attrs.frozen(kw_only=True)
class PluginInfo:
    """A plugin: its name in the TOML, who brings it, the hooks that it implements; ``error`` is null where it works."""

    name: str
    kind: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """As ``llmb plugins --json`` prints it."""
        return {**attrs.asdict(self), "hooks": list(self.hooks)}


def list_plugins() -> list[PluginInfo]:
    """All installed plugins, by kind and name; each is loaded, and one that does not work hurts no other."""
    installed = find_plugins()
    return [_listed(plugin, installed) for plugin in installed]


def _listed(plugin: PluginEntry, installed: Sequence[PluginEntry]) -> PluginInfo:
    hooks: tuple[str, ...] = ()
    error = None
    try:
        hooks = load(plugin).hooks
        choose(plugin.kind, plugin.name, installed)
    except PluginError as fault:
        error = str(fault)
    return PluginInfo(
        name=plugin.name,
        kind=plugin.kind,
        distribution=plugin.distribution,
        version=plugin.version,
        hooks=hooks,
        error=error,
    )
