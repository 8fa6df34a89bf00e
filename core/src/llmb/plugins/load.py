"""Load the plugins that a run names, each behind a facade, with faults that name distribution and version."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import attrs
import pluggy

from llmb.hookspecs import KINDS, ExtensionHooks, FrameworkHooks, SchedulerHooks
from llmb.plugins.find import FoundPlugin, find_plugins
from llmb.values.errors import Fault, LlmbError, PluginError
from llmb.version import VERSION


def load_framework(name: str) -> FrameworkHooks[Any]:
    """The framework plugin of this name. Raises PluginError where it is missing, duplicate, broken or too new."""
    return cast("FrameworkHooks[Any]", load(choose("framework", name)))


def load_scheduler(name: str) -> SchedulerHooks[Any]:
    """The scheduler plugin of this name. Raises PluginError like `load_framework`."""
    return cast("SchedulerHooks[Any]", load(choose("scheduler", name)))


def load_extensions() -> tuple[ExtensionHooks, ...]:
    """Every installed extension that works; one that does not is warned about and hurts nothing else."""
    loaded = []
    for name in dict.fromkeys(plugin.name for plugin in find_plugins() if plugin.kind == "extension"):
        try:
            loaded.append(cast("ExtensionHooks", load(choose("extension", name))))
        except PluginError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    return tuple(loaded)


def choose(kind: str, name: str, installed: Sequence[FoundPlugin] | None = None) -> FoundPlugin:
    """The one installed plugin of this kind and name. Raises PluginError for none and for several."""
    of_kind = [plugin for plugin in (find_plugins() if installed is None else installed) if plugin.kind == kind]
    found = [plugin for plugin in of_kind if plugin.name == name]
    if not found:
        raise PluginError(_missing(kind, name, sorted({plugin.name for plugin in of_kind})))
    if len(found) > 1:
        brought = " and ".join(plugin.who for plugin in found)
        raise PluginError(f"{kind} {name!r} is brought by {brought}; uninstall all but one")
    return found[0]


def _missing(kind: str, name: str, names: list[str]) -> Fault:
    there = f"installed are {', '.join(names)}" if names else f"no {kind} plugin is installed"
    distribution = "llmb-" + name.replace("_", "-")
    nearest = difflib.get_close_matches(name, names, n=1)
    return Fault(
        message=f"{kind} plugin {name!r} is not installed ({there}); `pip install {distribution}` would bring it",
        nearest=nearest[0] if nearest else None,
    )


def load(found: FoundPlugin) -> Facade:
    """Import one plugin and check it against its hooks. Raises PluginError, naming distribution and version."""
    _refuse_too_new(found)
    try:
        plugin = _resolve(found.value)
    except Exception as error:  # whatever a stranger's module raises at import
        raise PluginError(f"{found.who} is broken: {found.value} fails with {_short(error)}") from error
    try:
        return Facade(found, plugin)
    except pluggy.PluginValidationError as error:
        raise PluginError(f"{found.who} does not fit llmb {VERSION}: {_short(error)}") from error


def _refuse_too_new(found: FoundPlugin) -> None:
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
    plugin: Any = import_module(module)
    for part in path.split(".") if path else ():
        plugin = getattr(plugin, part)
    return plugin() if isinstance(plugin, type) else plugin


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


class Facade:
    """The hooks of one plugin, called by keyword.

    Where the plugin implements none, the Protocol's own body answers; a hook that has no default and is missing, or
    that answers nothing, is a PluginError; what a hook raises carries a note that names the plugin.
    """

    def __init__(self, found: FoundPlugin, plugin: object) -> None:
        self.found = found
        self._plugin = plugin
        self._spec = KINDS[found.kind]
        self._manager = pluggy.PluginManager("llmb")
        self._manager.add_hookspecs(self._spec)
        self._manager.register(plugin)
        self._manager.check_pending()
        self._check_options()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        caller = getattr(self._manager.hook, name, None)
        if caller is None:
            return getattr(self._plugin, name) if hasattr(self._plugin, name) else getattr(self._spec, name)
        return self._guarded(name, caller if caller.get_hookimpls() else self._default(name))

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that this plugin implements, sorted."""
        return tuple(sorted(caller.name for caller in self._manager.get_hookcallers(self._plugin) or ()))

    def _check_options(self) -> None:
        if self.found.kind == "extension":
            return
        options = getattr(self._plugin, "options", None)
        if not (isinstance(options, type) and attrs.has(options)):
            raise PluginError(f"{self.found.who} has no `options`; expected an attrs class")

    def _default(self, name: str) -> Callable[..., Any]:
        def answer(**arguments: Any) -> Any:
            return getattr(self._spec, name)(self._plugin, **arguments)

        return answer

    def _guarded(self, name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            try:
                answer = hook(**arguments)
            except LlmbError:
                raise
            except NotImplementedError:
                raise PluginError(f"{self.found.who} does not implement {name}()") from None
            except Exception as error:
                error.add_note(f"in {name}() of {self.found.who}")
                raise
            if answer is None and not _may_be_none(getattr(self._spec, name)):
                raise PluginError(f"{self.found.who}: {name}() returned nothing")
            return answer

        return call


def _may_be_none(hook: Callable[..., Any]) -> bool:
    return "None" in str(hook.__annotations__.get("return", "None"))
