"""The plugin code that runs now, and reports of code that takes long."""

import sys
import threading
import time
import warnings
from typing import ClassVar, TextIO, cast

from llmb.plugins.plugin_output import PluginOutput
from llmb.values.errors import PluginWarning

SLOW_S = 5.0
"""Seconds after which plugin code is reported while it runs."""

WATCH_INTERVAL_S = 0.5
"""Seconds between two checks for slow code."""

PARSER_LIMIT_S = 10.0
"""Seconds that a parser has for one block. A pattern that backtracks would otherwise hang the command forever."""


class RunningCode:
    """A piece of plugin code in a ``with`` block. It is reported by a PluginWarning if it runs longer than `SLOW_S`.

    The same code is reported once, and again only after a faster call: polls of a busy scheduler print no line each.
    One thread watches all code and ends when none runs, since a thread for each call would take longer than most hooks.
    """

    _lock: ClassVar = threading.Lock()
    _running: ClassVar[list["RunningCode"]] = []
    _reported: ClassVar[set[tuple[str, str]]] = set()
    _watcher: ClassVar[threading.Thread | None] = None

    def __init__(self, plugin: str, code: str) -> None:
        self.plugin = plugin
        self.code = code

    def __enter__(self) -> None:
        """Redirect what this thread prints, and watch the code. `contextlib.redirect_stdout` is not for threads."""
        self._thread = threading.get_ident()
        self._due_s = time.monotonic() + SLOW_S
        with self._lock:
            self._running.append(self)
            if not isinstance(output := sys.stdout, PluginOutput):
                output = PluginOutput(sys.stdout, self.runs_in)
            self._output = output
            sys.stdout = cast("TextIO", self._output)
            if RunningCode._watcher is None:
                RunningCode._watcher = threading.Thread(target=_watch, daemon=True)
                RunningCode._watcher.start()

    def __exit__(self, _kind: object, _error: object, _place: object, /) -> None:
        """Stop watching the code. Restore the output if no other code runs."""
        with self._lock:
            self._running.remove(self)
            if time.monotonic() < self._due_s:
                self._reported.discard((self.plugin, self.code))
            if not self._running:
                sys.stdout = self._output.stdout
                self._output.move_log_handlers()

    @classmethod
    def runs_in(cls, thread: int) -> bool:
        """Check whether plugin code runs in a thread."""
        return any(each._thread == thread for each in tuple(cls._running))  # other threads change the list

    @classmethod
    def report(cls) -> bool:
        """Report the code that is slow by now. Return False if no code runs."""
        with cls._lock:
            now_s = time.monotonic()
            slow = {(each.plugin, each.code) for each in cls._running if each._due_s <= now_s} - cls._reported
            cls._reported |= slow
            if not (code_left := bool(cls._running)):
                cls._watcher = None
        for plugin, code in sorted(slow):
            warning = PluginWarning(f"{plugin}: {code} has been running for {SLOW_S:g} s")
            warnings.showwarning(warning, PluginWarning, __file__, 0, line="")  # although a filter ignores warnings
        return code_left


def _watch() -> None:
    while RunningCode.report():
        time.sleep(WATCH_INTERVAL_S)
