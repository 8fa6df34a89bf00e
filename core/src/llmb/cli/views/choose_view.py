"""The progress of runs: a table on a terminal, plain lines elsewhere. Both go to standard error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr

from llmb.cli import output
from llmb.cli.views.plain_view import PlainView, View

REDRAW_INTERVAL_S = 0.1
"""Pause between two updates of the table."""


@contextmanager
def open_view() -> Iterator[View]:
    """Open the view that suits standard error."""
    if output.quiet.get():
        yield View()
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") in (None, "", "dumb", "unknown"):  # which move no cursor
        with closing(PlainView()) as plain:
            yield plain
        return
    from llmb.cli.views.live_area import LinesAbove, LiveArea
    from llmb.cli.views.live_view import LiveView

    area = LiveArea(output.console(stderr=True))
    view = LiveView(area)
    continued = _signal_handler(signal.SIGCONT, lambda *_: view.forget_position())  # after Ctrl-Z
    try:
        with redirect_stderr(LinesAbove(area)), continued, Repeater(view.draw_if_changed):
            yield view
    finally:
        # a second Ctrl-C would leave the cursor within a table that is half drawn
        with _signal_handler(signal.SIGINT, signal.SIG_IGN):
            view.close()


@contextmanager
def _signal_handler(
    number: signal.Signals, handler: Callable[[int, object], object] | signal.Handlers
) -> Iterator[None]:
    """Handle a signal in this way until the block ends."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def show_activity(activity: str) -> Iterator[None]:
    """Show on a terminal what a command is doing in the block, such as ``checking eos``."""
    if not sys.stderr.isatty():
        yield
        return
    with open_view() as view:
        view.show_activity(activity)
        yield


class Repeater:
    """Calls a function every `REDRAW_INTERVAL_S` in a thread, until the ``with`` block ends.

    If the function fails, it is not called again, and the end of the block raises its error.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def _repeat(self) -> None:
        try:
            while not self._ended.wait(REDRAW_INTERVAL_S):
                self._act()
        except Exception as error:  # noqa: BLE001  # raised by the thread that opened the block
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._error and exception[0] is None:
            raise self._error
