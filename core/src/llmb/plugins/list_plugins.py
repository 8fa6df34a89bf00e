"""The list of installed plugins, with the hooks or the error of each."""

from typing import Any

import attrs

from llmb.plugins.load import choose
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import PluginError


@attrs.frozen(kw_only=True)
class PluginInfo:
    """An installed plugin: its name in the TOML, its distribution and its hooks. ``error`` is None if it works."""

    name: str
    kind: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the plugin as ``llmb plugins --json`` prints it."""
        return {**attrs.asdict(self), "hooks": list(self.hooks)}


def list_plugins(*, registry: PluginRegistry | None = None) -> list[PluginInfo]:
    """Load all installed plugins and describe them, sorted by kind and name. A broken plugin affects no other."""
    registry = registry or PluginRegistry()
    plugins = []
    for entry in registry.installed:
        hooks: tuple[str, ...] = ()
        error = None
        try:
            hooks = registry.hooks(entry)
            choose(entry.kind, entry.name, registry.installed)
        except PluginError as found:
            error = str(found)
        plugins.append(
            PluginInfo(
                name=entry.name,
                kind=entry.kind,
                distribution=entry.distribution,
                version=entry.version,
                hooks=hooks,
                error=error,
            )
        )
    return plugins
