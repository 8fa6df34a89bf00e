"""A plugin behind its hooks: what it does not implement, and what it answers wrongly, is a fault that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pluggy

from llmb.hookspecs import KINDS
from llmb.plugins.find import PluginEntry
from llmb.plugins.hook_signatures import PROJECT, signature_errors
from llmb.plugins.parser import CheckedParser
from llmb.plugins.return_types import return_type_error, short
from llmb.values.choices import WrongWordError
from llmb.values.errors import LlmbError, PluginError
from llmb.values.job import Script
from llmb.values.job_status import JobHandle
from llmb.version import VERSION

ASKED_FOR = {"submit": "scripts", "poll": "tickets"}
"""Hooks that answer for each of many, by its id; and the argument that holds these."""


class Plugin:
    """The hooks of one plugin, called by keyword.

    Where the plugin implements none, the Protocol's own body answers. An answer that is not of the stated type, or not
    for each job that was asked for, is a PluginError, and so is what a log parser raises; what a hook raises carries a
    note that names the plugin. Raises PluginError for a plugin that does not fit its hooks.
    """

    def __init__(self, found: PluginEntry, plugin: object) -> None:
        self.found = found
        self._plugin = plugin
        self._spec = KINDS[found.kind]
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(self._spec)
        if wrong := [*signature_errors(plugin, self._spec, found.kind)]:
            raise PluginError(f"{found.who} does not fit llmb {VERSION}: {'; '.join(wrong)}")
        try:
            self._manager.register(plugin, name=found.name)
        except Exception as error:  # pluggy's own objections, and whatever a stranger's property raises
            raise PluginError(f"{found.who} does not fit llmb {VERSION}: {short(error)}") from error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        caller = getattr(self._manager.hook, name, None)
        if caller is None:
            return getattr(self._plugin, name) if hasattr(self._plugin, name) else getattr(self._spec, name)
        default = partial(getattr(self._spec, name), self._plugin)
        return self._guarded(name, caller if caller.get_hookimpls() else default)

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that this plugin implements, sorted."""
        return tuple(sorted(caller.name for caller in self._manager.get_hookcallers(self._plugin) or ()))

    def _guarded(self, name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            try:
                answer = hook(**arguments)
            except LlmbError:
                raise
            except WrongWordError as error:
                raise PluginError(f"{self.found.who}: in {name}(), {error}") from error
            except Exception as error:
                error.add_note(f"in {name}() of {self.found.who}")
                raise
            if wrong := return_type_error(getattr(self._spec, name), answer):
                raise PluginError(f"{self.found.who}: {name}() returned {wrong}")
            if name in ASKED_FOR and (ids := _unanswered(arguments[ASKED_FOR[name]], answer)):
                raise PluginError(f"{self.found.who}: {name}() returned nothing for {', '.join(ids)}")
            return CheckedParser(answer, self.found.who) if name == "parse_log" and answer is not None else answer

        return call


def _unanswered(asked: Sequence[Script | JobHandle], answer: Mapping[str, object]) -> list[str]:
    return [each.id for each in asked if each.id not in answer]
