"""Whether a plugin fits the hooks of its kind, told before any of them is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from llmb.hookspecs import REQUIRED
from llmb.values.nearest import nearest_name

PROJECT = "llmb"  # what pluggy marks hooks with


def signature_errors(plugin: object, spec: Any, kind: str) -> Iterator[str]:
    """All by which a plugin does not fit the hooks of its kind (``spec``), each in a few words."""
    yield from _misused(plugin, spec, kind)
    yield from _unimplemented(plugin, spec, kind)
    if kind != "extension":
        yield from _without_options(plugin)


def _misused(plugin: object, spec: Any, kind: str) -> Iterator[str]:
    """The marked methods that are no hook of this kind, or that want arguments which the hook does not give.

    pluggy finds most of these too, but names the plugin by an address in memory; and a keyword-only argument it
    never passes, which would show only at the call.
    """
    hooks = _hooks(spec)
    for name, options in _marked(plugin):
        hook = options.get("specname") or name
        if hook in hooks:
            yield from _arguments(name, getattr(plugin, name), getattr(spec, hook))
        else:
            nearest = nearest_name(hook, hooks)
            yield f"{hook}() is no hook of {'an' if kind == 'extension' else 'a'} {kind}" + (
                f" (did you mean {nearest!r}?)" if nearest else ""
            )


def _unimplemented(plugin: object, spec: Any, kind: str) -> Iterator[str]:
    """The hooks that the plugin forgot to mark, and those without a default that it lacks.

    The first would never be called, and nobody would be told; the others would be missed when a run is under way.
    """
    implemented = {options.get("specname") or name for name, options in _marked(plugin)}
    for name in (name for name in _hooks(spec) if name not in implemented):
        own = inspect.getattr_static(plugin, name, None)
        if own not in (None, getattr(spec, name)) and not inspect.ismodule(own):  # a plugin may be a package
            yield f"its {name}() is not marked with @hookimpl"
        elif name in REQUIRED[kind]:
            yield f"it does not implement {name}()"


def _hooks(spec: Any) -> list[str]:
    return [name for name in vars(spec) if hasattr(getattr(spec, name), f"{PROJECT}_spec")]


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


def _without_options(plugin: object) -> Iterator[str]:
    options = getattr(plugin, "options", None)
    if not (isinstance(options, type) and attrs.has(options)):
        yield "it has no `options`, an attrs class"
