"""The plugin boundary. All code of a plugin runs here: imports, attributes, option validators, hooks, log parsers.

An exception in that code becomes a PluginError of one line, which names the plugin, the hook, the distribution and its
version. What the code prints on standard output goes to standard error, so that ``--json`` stays one document.
"""

import contextlib
import functools
import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llmb.hookspecs import KINDS, ReportRenderer
from llmb.plugins.checked_parser import CheckedParser
from llmb.plugins.find_plugins import PluginEntry
from llmb.plugins.hook_results import check_result, type_name
from llmb.plugins.slow_hooks import RunningCode
from llmb.values.errors import Fault, LlmbError, PluginError, RecipeError, SpecError, TargetError
from llmb.values.report_content import Report
from llmb.values.texts.error_text import exception_text

PROJECT = "llmb"  # the name under which pluggy marks hooks

RAISED_BY_HOOKS: tuple[type[LlmbError], ...] = (SpecError, RecipeError, TargetError)
"""What the hooks of frameworks and schedulers raise by contract. These errors are for the user as they are."""

ID_ARGUMENTS = {"submit": "scripts", "poll": "handles"}
"""The hooks that return a value for each id, with the argument that has these ids."""


class Guard:
    """The guard of one plugin's code. Each piece of code has a name for messages, such as ``build_job()``.

    Exceptions of the classes ``passed_on`` are not replaced by a PluginError.
    """

    def __init__(self, entry: PluginEntry) -> None:
        self.entry = entry
        of_hooks = () if entry.kind == "extension" else RAISED_BY_HOOKS
        self.passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt, *of_hooks)
        self.name = str(entry)

    def running(self, code: str, *, file: str | None = None) -> contextlib.AbstractContextManager[None]:
        """Guard the plugin code in a ``with`` block; ``file`` is the log that it parses.

        Raise PluginError for any exception, SystemExit included. KeyboardInterrupt and the errors that hooks raise by
        contract pass through. If LLMB_DEBUG is set, print the traceback on standard error.
        """
        return _GuardedCode(self, code, file)

    def error(self, problem: str, *, file: str | None = None) -> PluginError:
        """Return an error that names this plugin."""
        return PluginError(Fault(message=f"{self.name}: {problem}", file=file))


class _GuardedCode(RunningCode):
    """Plugin code in a ``with`` block whose exceptions become errors. A generator would take twice the time."""

    def __init__(self, guard: Guard, code: str, file: str | None) -> None:
        super().__init__(guard.name, code)
        self._guard = guard
        self._file = file

    def __exit__(self, kind: object, error: object, place: object) -> None:
        """Stop watching the code. Raise PluginError if the code raised an exception that is no error for the user."""
        super().__exit__(kind, error, place)
        if not isinstance(error, BaseException) or isinstance(error, self._guard.passed_on):
            return
        if os.environ.get("LLMB_DEBUG"):
            traceback.print_exception(error)
        text = exception_text(error, place=_place_in(self._guard.entry, error))
        raise self._guard.error(f"{self.code} failed: {text}", file=self._file) from error


def _place_in(entry: PluginEntry, error: BaseException) -> str:
    """Return the last line of the plugin's own code in a traceback, such as ``(plugin.py, line 12)``, or ""."""
    if isinstance(error, SyntaxError):  # its text has the place
        return ""
    package = _top_package(entry.value.partition(":")[0])
    places = [
        f"({Path(frame.f_code.co_filename).name}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if _top_package(str(frame.f_globals.get("__name__"))) == package
    ]
    return places[-1] if places else ""


def _top_package(module: str) -> str:
    return module.partition(".")[0]


class Plugin:
    """A loaded plugin, with the hooks and the attributes of its kind. Hooks are called with keyword arguments.

    A hook that the plugin does not implement has the default of the Protocol. A hook raises PluginError if the plugin
    fails, returns a value of the wrong type, or leaves out an id in the result of ``submit`` or ``poll``.
    """

    def __init__(
        self, guard: Guard, plugin: object, attributes: Mapping[str, Any], hooks: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.entry = guard.entry
        self.guard = guard
        self._plugin = plugin
        self._attributes = attributes
        self._hooks = hooks
        self._spec = KINDS[guard.entry.kind]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._attributes:
            return self._attributes[name]
        specification: Any = getattr(self._spec, name, None)
        if not hasattr(specification, f"{PROJECT}_spec"):
            raise AttributeError(f"{self.entry} has no hook or attribute {name!r}")
        hook = self._hooks.get(name) or functools.partial(specification, self._plugin)
        call = functools.partial(self._call, name, hook, specification)
        setattr(self, name, call)  # found once, because a sweep calls the same hooks thousands of times
        return call

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that the plugin implements, sorted."""
        return tuple(sorted(self._hooks))

    def _call(self, name: str, hook: Callable[..., Any], specification: Callable[..., Any], /, **arguments: Any) -> Any:
        with self.guard.running(f"{name}()"):
            result, problem = check_result(hook(**arguments), specification)
        if problem:
            raise self.guard.error(f"{name}() {problem}")
        requested = arguments[ID_ARGUMENTS[name]] if name in ID_ARGUMENTS else ()
        if missing := [each.id for each in requested if each.id not in result]:
            raise self.guard.error(f"{name}() returned nothing for {', '.join(missing)}")
        if name == "report":
            return {suffix: functools.partial(self._render, suffix, renderer) for suffix, renderer in result.items()}
        return CheckedParser(result, self.guard) if name == "parse_log" and result is not None else result

    def _render(self, suffix: str, renderer: ReportRenderer, report: Report, /) -> str:
        """Call a renderer of this plugin. Raise PluginError if it fails or returns no text."""
        code = f"the renderer of {suffix}"
        with self.guard.running(code):
            text = renderer(report)
        if not isinstance(text, str):
            raise self.guard.error(f"{code} returned {type_name(text)}; expected str")
        return text


def decoding(plugin: object, attribute: str) -> contextlib.AbstractContextManager[None]:
    """Guard the decoding of a table, which runs the converters and validators of the class in ``attribute``."""
    return plugin.guard.running(attribute) if isinstance(plugin, Plugin) else contextlib.nullcontext()


def plugin_error(plugin: object, problem: str) -> PluginError:
    """Return an error that names the plugin, with its distribution and version."""
    if isinstance(plugin, Plugin):
        return plugin.guard.error(problem)
    return PluginError(f"{type(plugin).__name__}: {problem}")
