"""The plugins that one command works with, each loaded once."""

from __future__ import annotations

from typing import Any

from llmb.hookspecs import ExtensionHooks, FrameworkHooks, SchedulerHooks
from llmb.plugins.load import load_extensions, load_framework, load_scheduler


class PluginPool:
    """Loads a plugin when it is first asked for. Every method raises PluginError as `llmb.plugins.load` does."""

    def __init__(self) -> None:
        self._frameworks: dict[str, FrameworkHooks[Any]] = {}
        self._schedulers: dict[str, SchedulerHooks[Any]] = {}
        self._extensions: tuple[ExtensionHooks, ...] | None = None

    def framework(self, name: str) -> FrameworkHooks[Any]:
        """By the word before the slash of a recipe's address."""
        if name not in self._frameworks:
            self._frameworks[name] = load_framework(name)
        return self._frameworks[name]

    def scheduler(self, name: str) -> SchedulerHooks[Any]:
        """By the word of ``target.scheduler``."""
        if name not in self._schedulers:
            self._schedulers[name] = load_scheduler(name)
        return self._schedulers[name]

    @property
    def extensions(self) -> tuple[ExtensionHooks, ...]:
        """All that are installed and work."""
        if self._extensions is None:
            self._extensions = load_extensions()
        return self._extensions
