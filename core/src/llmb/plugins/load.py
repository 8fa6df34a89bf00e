"""Loading of one plugin: the version of llmb that it requires, its import, and its match with the hooks of its kind."""

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeGuard

import attrs

from llmb.hookspecs import KINDS, REQUIRED
from llmb.plugins.find_plugins import PluginEntry
from llmb.plugins.guard import PROJECT, Guard, Plugin
from llmb.plugins.installed_names import GROUPS
from llmb.values.log_file_names import LogFiles
from llmb.values.model import Model
from llmb.values.texts.nearest_name import nearest_name
from llmb.version import VERSION

MAX_SHOWN = 60
"""Characters of an invalid attribute that are shown."""


def load(entry: PluginEntry) -> Plugin:
    """Import a plugin and check that it matches the hooks of its kind. Raise PluginError."""
    guard = Guard(entry)
    if entry.requires and not _accepts(entry.requires, VERSION):
        upgrade = f"pip install --upgrade llmb {entry.distribution}"
        raise guard.error(f"requires llmb {entry.requires}, but this is llmb {VERSION}; upgrade with `{upgrade}`")
    if entry.path:
        from llmb.plugins.declared.framework import DeclaredFramework  # only a framework's own file needs it

        plugin: Any = DeclaredFramework(Path(entry.path))
    else:
        with guard.running(f"import of {entry.value}"):
            plugin = _import(entry.value)
    if wrong := _wrong_base(plugin, entry.kind):
        raise guard.error(wrong)
    with guard.running("the check of its hooks"):
        members = dict(inspect.getmembers_static(plugin))  # which evaluates no property
        marked, known = [*_marked_methods(plugin, members)], vars(KINDS[entry.kind])
        problems = [*_hook_problems(marked, members, entry.kind)]
        hooks = {} if problems else {each.hook: _leaving_out(each) for each in marked if each.hook in known}
    if inspect.ismodule(plugin) and not marked:
        raise guard.error(f"the entry point {entry.value} names a module; expected MODULE:CLASS")
    attributes = {}
    for name, (matches, expected) in ATTRIBUTES[entry.kind].items():
        with guard.running(name):
            is_set = name in members or hasattr(plugin, name)  # a property that fails is set, too
            attributes[name] = value = getattr(plugin, name) if is_set else getattr(KINDS[entry.kind], name, None)
            if not matches(value):
                text = repr(value)
                shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
                problems.append(f"{name} is {shown}, not {expected}")
    if problems:
        raise guard.error(f"does not match the hooks of llmb {VERSION}: {'; '.join(problems)}")
    return Plugin(guard, plugin, attributes, hooks)


def _accepts(specifier: str, version: str) -> bool:
    """Check whether a version is accepted. A release candidate counts as its release too: 0.1rc1 satisfies >=0.1."""
    from packaging.specifiers import SpecifierSet  # not needed until a plugin is loaded
    from packaging.version import Version

    accepted = SpecifierSet(specifier)
    return any(accepted.contains(each, prereleases=True) for each in (version, Version(version).base_version))


def _import(value: str) -> Any:
    """Return the object of an entry point, or an instance if it is a class."""
    module, _, path = value.partition(":")
    plugin: Any = import_module(module.strip())
    for part in path.strip().split(".") if path else ():
        plugin = getattr(plugin, part)
    return plugin() if isinstance(plugin, type) else plugin


def _wrong_base(plugin: object, kind: str) -> str:
    """Return the problem of a plugin that inherits from the hooks of another kind, or nothing."""
    bases = plugin.__class__.__mro__
    others = [other for other, hooks in KINDS.items() if hooks in bases]
    if not others or kind in others:
        return ""
    group = next(group for group, each in GROUPS.items() if each == others[0])
    expected = f"{KINDS[kind].__name__}, or the entry-point group {group}"
    return f"it inherits from {KINDS[others[0]].__name__}; expected {expected}"


def _is_options(value: object) -> bool:
    if not (isinstance(value, type) and attrs.has(value)):
        return False
    attrs.resolve_types(value)  # an annotation of a name that does not exist raises NameError
    return True


def _is_window(value: object) -> bool:
    return value == "last" or (_is_pair(value, int) and 0 <= value[0] <= value[1])


def _is_poll_interval(value: object) -> bool:
    return _is_pair(value, int | float) and 0 < value[0] <= value[1] < math.inf


def _is_model_keys(value: object) -> bool:
    names = {*(field.name for field in attrs.fields(Model)), "pipeline_layout"}
    return isinstance(value, tuple | list) and all(each in names for each in value)


def _is_text_mapping(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for item in value.items() for text in item)


def _is_pair(value: object, kind: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(each, kind) for each in value)


_OPTIONS = (_is_options, "an attrs class")
_KEY_HINTS = (_is_text_mapping, "a mapping of words to keys")

ATTRIBUTES: Mapping[str, Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "framework": {
        "options": _OPTIONS,
        "key_hints": _KEY_HINTS,
        "settings": (lambda value: value is None or _is_options(value), "an attrs class"),
        "window": (_is_window, '"last" or two numbers of steps'),
        "log_files": (lambda value: isinstance(value, LogFiles), "a LogFiles"),
        "model_keys": (_is_model_keys, "names of keys of [model]"),
        "rank_times_setting": (lambda value: isinstance(value, str), "a text"),
    },
    "scheduler": {
        "options": _OPTIONS,
        "key_hints": _KEY_HINTS,
        "single_node": (lambda value: isinstance(value, bool), "True or False"),
        "poll_interval_s": (_is_poll_interval, "two positive numbers of seconds, the shorter one first"),
    },
    "extension": {},
}
"""The attributes of each kind of plugin, each with its check and what the check expects."""


@attrs.frozen
class _MarkedMethod:
    """A method that is marked with `hookimpl`, the hook that it implements, and the options of the mark."""

    name: str
    hook: str
    options: Mapping[str, Any]
    method: Callable[..., Any]

    @functools.cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters except ``*args`` and ``**kwargs``."""
        others = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [each for each in inspect.signature(self.method).parameters.values() if each.kind not in others]


def _marked_methods(plugin: object, members: Mapping[str, Any]) -> Iterator[_MarkedMethod]:
    for name, member in members.items():
        options = getattr(getattr(member, "__func__", member), f"{PROJECT}_impl", None)
        if isinstance(options, dict):
            yield _MarkedMethod(name, str(options.get("specname") or name), options, getattr(plugin, name))


def _hook_problems(marked: Sequence[_MarkedMethod], members: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Yield the ways in which a plugin does not match the hooks of its kind."""
    spec = KINDS[kind]
    hooks = [name for name in vars(spec) if hasattr(getattr(spec, name), f"{PROJECT}_spec")]
    implemented = {each.hook for each in marked}
    for each in marked:
        if each.options.get("hookwrapper") or each.options.get("wrapper"):
            yield f"{each.name}() is a hook wrapper, but llmb calls one implementation of each hook; remove the mark"
        elif each.hook not in hooks and each.options.get("optionalhook"):
            continue  # of another version of llmb
        elif each.hook in hooks:
            yield from _argument_problems(each, getattr(spec, each.hook))
        else:
            nearest = nearest_name(each.hook, hooks)
            yield f"{each.hook}() is not a hook of {kind}s" + (f" (did you mean {nearest!r}?)" if nearest else "")
    for name in hooks:
        member = members.get(name)
        unmarked = member not in (None, getattr(spec, name)) and not inspect.ismodule(member)  # of a package
        if name not in implemented and unmarked:
            yield f"{name}() is not marked with @hookimpl"
        elif name not in implemented and name in REQUIRED[kind]:
            yield f"{name}() is missing"
    if kind == "extension" and not implemented & {*hooks}:
        yield f"it implements no hook ({', '.join(f'{name}()' for name in hooks)})"


def _leaving_out(marked: _MarkedMethod) -> Callable[..., Any]:
    """Return a function that calls a method without the arguments that the method leaves out."""
    method, names = marked.method, [each.name for each in marked.parameters]

    def call(**arguments: Any) -> Any:
        return method(**{name: arguments[name] for name in names if name in arguments})

    return call


def _argument_problems(marked: _MarkedMethod, hook: Callable[..., Any]) -> Iterator[str]:
    name, named = marked.name, marked.parameters
    passed = [each for each in inspect.signature(hook).parameters if each != "self"]
    if unknown := [each.name for each in named if each.default is each.empty and each.name not in passed]:
        yield f"{name}() requires {', '.join(unknown)}, but the hook passes {', '.join(passed) or 'no argument'}"
    elif positional := [each.name for each in named if each.kind is each.POSITIONAL_ONLY]:
        yield f"{name}() takes {', '.join(positional)} by position only, but hooks are called by keyword"
