"""Load the plugins that a run names, each behind a facade, with faults that name distribution and version."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.plugins.call import Plugin
from llmb.plugins.find import PluginEntry, find_plugins
from llmb.plugins.return_types import short
from llmb.values.errors import Fault, PluginError
from llmb.values.nearest import nearest_name
from llmb.version import VERSION


def load_framework(name: str, installed: Sequence[PluginEntry] | None = None) -> FrameworkHooks[Any]:
    """The framework plugin of this name. Raises PluginError where it is missing, duplicate, broken or too new."""
    return cast("FrameworkHooks[Any]", load(choose("framework", name, installed)))


def load_scheduler(name: str, installed: Sequence[PluginEntry] | None = None) -> SchedulerHooks[Any]:
    """The scheduler plugin of this name. Raises PluginError like `load_framework`."""
    return cast("SchedulerHooks[Any]", load(choose("scheduler", name, installed)))


def choose(kind: str, name: str, installed: Sequence[PluginEntry] | None = None) -> PluginEntry:
    """The one installed plugin of this kind and name. Raises PluginError for none and for several."""
    plugins = find_plugins() if installed is None else installed
    found = [plugin for plugin in plugins if (plugin.kind, plugin.name) == (kind, name)]
    if not found:
        raise PluginError(_missing(kind, name, plugins))
    if len(found) > 1:
        brought = " and ".join(plugin.who for plugin in found)
        raise PluginError(f"{kind} {name!r} is brought by {brought}; uninstall all but one")
    return found[0]


def _missing(kind: str, name: str, installed: Sequence[PluginEntry]) -> Fault:
    """Names no distribution to install: a misspelt name may be anybody's on an index."""
    names = sorted({plugin.name for plugin in installed if plugin.kind == kind})
    message = f"{kind} plugin {name!r} is not installed"
    if other := {plugin.kind for plugin in installed if plugin.name == name} - {"extension"}:
        message = f"{name} is a {other.pop()}, and no {kind}"
    return Fault(
        message=message,
        expected=f"one of those installed: {', '.join(names)}" if names else None,
        nearest=nearest_name(name, names),
    )


def load(found: PluginEntry) -> Plugin:
    """Import one plugin and check it against its hooks. Raises PluginError, naming distribution and version."""
    _refuse_too_new(found)
    try:
        plugin = _resolve(found.value)
    except (Exception, SystemExit) as error:  # whatever a stranger's module raises at import
        raise PluginError(f"{found.who} is broken: {found.value} fails with {short(error)}") from error
    return Plugin(found, plugin)


def _refuse_too_new(found: PluginEntry) -> None:
    if not found.requires:
        return
    from packaging.specifiers import SpecifierSet  # not needed until a plugin is loaded

    if not SpecifierSet(found.requires).contains(VERSION, prereleases=True):
        raise PluginError(
            f"{found.who} is for llmb {found.requires}, and this is llmb {VERSION}; "
            f"`pip install --upgrade llmb {found.distribution}` brings two that fit"
        )


def _resolve(value: str) -> Any:
    module, _, path = value.partition(":")
    plugin: Any = import_module(module.strip())
    for part in path.strip().split(".") if path else ():
        plugin = getattr(plugin, part)
    return plugin() if isinstance(plugin, type) else plugin
