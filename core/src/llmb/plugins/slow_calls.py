"""Limits on the time of calls into plugins, and reports of calls that take long, while they run."""

import sys
import threading
import time

SLOW_S = 5.0
"""Seconds after which a call into a plugin is reported while it runs."""

PARSER_LIMIT_S = 10.0
"""Seconds that a parser has for one block. A pattern that backtracks would otherwise hang the command forever."""


class SlowCalls:
    """The calls into one plugin. A call that takes longer than `SLOW_S` is reported on standard error while it runs.

    A name is reported once, and again only after a faster call: polls of a busy scheduler print no line each. One
    thread watches all calls and ends when none runs, since a thread for each call would take longer than most hooks.
    """

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._lock = threading.Lock()
        self._due_s: dict[object, tuple[str, float]] = {}  # by call: its name, and the time at which it is slow
        self._reported: set[str] = set()
        self._thread: threading.Thread | None = None

    def begin(self, code: str) -> tuple[object, float]:
        """Watch a call from now on. Return what `end` needs."""
        call, due_s = object(), time.monotonic() + SLOW_S
        with self._lock:
            self._due_s[call] = (code, due_s)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
        return call, due_s

    def end(self, code: str, call: object, due_s: float) -> None:
        """Watch the call no longer."""
        with self._lock:
            del self._due_s[call]
            if time.monotonic() < due_s:
                self._reported.discard(code)

    def _watch(self) -> None:
        while self._report():
            time.sleep(SLOW_S / 10)

    def _report(self) -> bool:
        """Report the calls that are slow by now. Return False if no call is left."""
        with self._lock:
            now_s = time.monotonic()
            slow = {code for code, due_s in self._due_s.values() if due_s <= now_s} - self._reported
            self._reported |= slow
            if not (calls_left := bool(self._due_s)):
                self._thread = None
        for code in sorted(slow):
            sys.stderr.write(f"llmb: {self._plugin}: {code} has been running for {SLOW_S:g} s\n")
        return calls_left
