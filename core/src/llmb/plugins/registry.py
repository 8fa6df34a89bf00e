"""The plugins that one command works with, each loaded once, and their recipes, each read once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from llmb.hookspecs import ExtensionHooks, FrameworkHooks, SchedulerHooks
from llmb.plugins.call import Plugin
from llmb.plugins.find import PluginEntry, find_plugins
from llmb.plugins.load import choose, load, load_framework, load_scheduler
from llmb.plugins.recipe_files import find_recipe
from llmb.values.errors import PluginError, PluginWarning
from llmb.values.failure import Signature
from llmb.values.model import Accelerator
from llmb.values.recipe import Recipe
from llmb.values.steps import LogParser

T = TypeVar("T")


class PluginRegistry:
    """Loads a plugin when it is first asked for. Raises PluginError for one that is missing or does not work.

    A plugin that nobody named and that does not work is left out with a PluginWarning: it may hurt no run.
    """

    def __init__(self) -> None:
        self._installed: tuple[PluginEntry, ...] | None = None
        self._frameworks: dict[str, FrameworkHooks[Any]] = {}
        self._schedulers: dict[str, SchedulerHooks[Any]] = {}
        self._extensions: tuple[Plugin, ...] | None = None
        self._recipes: dict[str, Recipe] = {}

    @property
    def installed(self) -> Sequence[PluginEntry]:
        """What is installed, looked for once."""
        if self._installed is None:
            self._installed = find_plugins()
        return self._installed

    def framework(self, name: str) -> FrameworkHooks[Any]:
        """By the word before the slash of a recipe's address."""
        if name not in self._frameworks:
            self._frameworks[name] = load_framework(name, self.installed)
        return self._frameworks[name]

    def scheduler(self, name: str) -> SchedulerHooks[Any]:
        """By the word of ``target.scheduler``."""
        if name not in self._schedulers:
            self._schedulers[name] = load_scheduler(name, self.installed)
        return self._schedulers[name]

    def recipe(self, address: str) -> Recipe:
        """As `load_recipe`. Raises RecipeError or PluginError."""
        if address not in self._recipes:
            self._recipes[address] = find_recipe(address, self.installed)
        return self._recipes[address]

    def accelerators(self) -> list[Accelerator]:
        """What the extensions add to the core's table, in the order of their names."""
        return self._ask_extensions(lambda extension: extension.accelerators(), Accelerator)

    def signatures(self) -> list[Signature]:
        """The causes of failure that the extensions know, in the order of their names."""
        return self._ask_extensions(lambda extension: extension.diagnose(), Signature)

    def message_parsers(self) -> list[LogParser]:
        """A fresh parser of what each installed scheduler writes into a job's log, for logs that someone else made."""
        parsers: list[LogParser | None] = []
        for plugin in {plugin.name: plugin for plugin in self.installed if plugin.kind == "scheduler"}.values():
            try:
                parsers.append(self.scheduler(plugin.name).parse_log(run=None))
            except Exception as error:  # noqa: BLE001  # whatever a stranger's hook raises
                _leave_out(plugin, error)
        return [parser for parser in parsers if parser is not None]

    def _ask_extensions(self, hook: Callable[[ExtensionHooks], Iterable[T]], kind: type[T]) -> list[T]:
        answers: list[T] = []
        for extension in self._load_extensions():
            try:
                answers += _all_of(kind, hook(extension))
            except Exception as error:  # noqa: BLE001  # whatever a stranger's hook raises
                _leave_out(extension.found, error)
        return answers

    def _load_extensions(self) -> tuple[Plugin, ...]:
        if self._extensions is None:
            loaded = []
            for name in dict.fromkeys(plugin.name for plugin in self.installed if plugin.kind == "extension"):
                try:
                    loaded.append(load(choose("extension", name, self.installed)))
                except PluginError as error:
                    warnings.warn(PluginWarning(f"left out: {error}"), stacklevel=2)
            self._extensions = tuple(loaded)
        return self._extensions


def _all_of(kind: type[T], answers: Iterable[T]) -> list[T]:
    found = list(answers)
    if wrong := [each for each in found if not isinstance(each, kind)]:
        raise TypeError(f"{wrong[0]!r} is no {kind.__name__}")
    return found


def _leave_out(plugin: PluginEntry, error: Exception) -> None:
    why = str(error) if isinstance(error, PluginError) else f"{plugin.who}: {type(error).__name__}: {error}"
    warnings.warn(PluginWarning(f"left out: {' '.join(why.split())}"), stacklevel=2)
