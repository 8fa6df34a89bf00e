"""Load the plugins that a run names, each behind a facade, with faults that name distribution and version."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, cast

import attrs
import pluggy

from llmb.hookspecs import KINDS, FrameworkHooks, SchedulerHooks
from llmb.plugins.find import FoundPlugin, find_plugins
from llmb.values.errors import Fault, LlmbError, PluginError
from llmb.values.nearest import nearest_name
from llmb.version import VERSION

PROJECT = "llmb"  # what pluggy marks hooks with


def load_framework(name: str, installed: Sequence[FoundPlugin] | None = None) -> FrameworkHooks[Any]:
    """The framework plugin of this name. Raises PluginError where it is missing, duplicate, broken or too new."""
    return cast("FrameworkHooks[Any]", load(choose("framework", name, installed)))


def load_scheduler(name: str, installed: Sequence[FoundPlugin] | None = None) -> SchedulerHooks[Any]:
    """The scheduler plugin of this name. Raises PluginError like `load_framework`."""
    return cast("SchedulerHooks[Any]", load(choose("scheduler", name, installed)))


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
    distribution = "llmb-" + name.replace("_", "-")
    nearest = nearest_name(name, names)
    remedy = "" if nearest else f"; `pip install {distribution}` would bring it"  # a misspelt one may be anybody's
    return Fault(
        message=f"{kind} plugin {name!r} is not installed{remedy}",
        expected=f"one of those installed: {', '.join(names)}" if names else None,
        nearest=nearest,
    )


def load(found: FoundPlugin) -> Facade:
    """Import one plugin and check it against its hooks. Raises PluginError, naming distribution and version."""
    _refuse_too_new(found)
    try:
        plugin = _resolve(found.value)
    except (Exception, SystemExit) as error:  # whatever a stranger's module raises at import
        raise PluginError(f"{found.who} is broken: {found.value} fails with {_short(error)}") from error
    return Facade(found, plugin)


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
    plugin: Any = import_module(module.strip())
    for part in path.strip().split(".") if path else ():
        plugin = getattr(plugin, part)
    return plugin() if isinstance(plugin, type) else plugin


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


class Facade:
    """The hooks of one plugin, called by keyword.

    Where the plugin implements none, the Protocol's own body answers; a hook that has no default and is missing, or
    that answers nothing, is a PluginError; what a hook raises carries a note that names the plugin. Raises
    PluginError for a plugin that does not fit its hooks.
    """

    def __init__(self, found: FoundPlugin, plugin: object) -> None:
        self.found = found
        self._plugin = plugin
        self._spec = KINDS[found.kind]
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(self._spec)
        if misfits := [*_misfits(plugin, self._spec, found.kind), *_without_options(plugin, found.kind)]:
            raise PluginError(f"{found.who} does not fit llmb {VERSION}: {'; '.join(misfits)}")
        try:
            self._manager.register(plugin, name=found.name)
        except Exception as error:  # pluggy's own objections, and whatever a stranger's property raises
            raise PluginError(f"{found.who} does not fit llmb {VERSION}: {_short(error)}") from error

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

    def _default(self, name: str) -> Callable[..., Any]:
        def answer(**arguments: Any) -> Any:
            try:
                return getattr(self._spec, name)(self._plugin, **arguments)
            except NotImplementedError:
                raise PluginError(f"{self.found.who} does not implement {name}()") from None

        return answer

    def _guarded(self, name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            try:
                answer = hook(**arguments)
            except LlmbError:
                raise
            except Exception as error:
                error.add_note(f"in {name}() of {self.found.who}")
                raise
            if answer is None and not _may_be_none(getattr(self._spec, name)):
                raise PluginError(f"{self.found.who}: {name}() returned nothing")
            return answer

        return call


def _may_be_none(hook: Callable[..., Any]) -> bool:
    return "None" in str(hook.__annotations__.get("return", "None"))


def _misfits(plugin: object, spec: Any, kind: str) -> Iterator[str]:
    """The marked methods that are no hook of this kind, or that want arguments which the hook does not give.

    pluggy finds most of these too, but names the plugin by an address in memory; and a keyword-only argument it
    never passes, which would show only at the call.
    """
    hooks = [name for name in vars(spec) if hasattr(getattr(spec, name), f"{PROJECT}_spec")]
    for name, options in _marked(plugin):
        hook = options.get("specname") or name
        if hook in hooks:
            yield from _arguments(name, getattr(plugin, name), getattr(spec, hook))
        else:
            nearest = nearest_name(hook, hooks)
            yield f"{hook}() is no hook of {'an' if kind == 'extension' else 'a'} {kind}" + (
                f" (did you mean {nearest!r}?)" if nearest else ""
            )


def _marked(plugin: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is marked with `hookimpl`, and how; nothing of the plugin is called for that, no property either."""
    for name in dir(plugin):
        member = inspect.getattr_static(plugin, name)
        options = getattr(getattr(member, "__func__", member), f"{PROJECT}_impl", None)
        if isinstance(options, dict):
            yield name, options


def _arguments(name: str, method: Callable[..., Any], hook: Callable[..., Any]) -> Iterator[str]:
    given = [each for each in inspect.signature(hook).parameters if each != "self"]
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [each for each in inspect.signature(method).parameters.values() if each.kind in named]
    wanted = [each for each in parameters if each.default is each.empty]
    if unknown := [each.name for each in wanted if each.name not in given]:
        yield f"{name}() wants {', '.join(unknown)}, and the hook gives {', '.join(given) or 'nothing'}"
    elif keyword := [each.name for each in wanted if each.kind is each.KEYWORD_ONLY]:
        yield f"{name}() takes {', '.join(keyword)} by keyword only, and hooks are called by position"


def _without_options(plugin: object, kind: str) -> Iterator[str]:
    options = getattr(plugin, "options", None)
    if kind != "extension" and not (isinstance(options, type) and attrs.has(options)):
        yield "it has no `options`, an attrs class"
