"""The progress of runs: a table on a terminal, plain lines elsewhere. Both go to standard error."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Protocol

import llmb
from llmb.cli import output
from llmb.cli.views.notices import describe_notice, describe_skipped
from llmb.cli.views.numbers import format_clock

PLAIN_PARTS = 10
"""Plain lines per run while it trains: one for each tenth of the steps."""

ACTIVITY_DELAY_S = 0.5
"""Time after which a plain line names an activity. Most activities are over before."""

REDRAW_INTERVAL_S = 0.1
"""Pause between two updates of the table."""


class View(Protocol):
    """Shows events to the user."""

    def add_runs(self, run_ids: Iterable[str]) -> None:
        """Show these runs, whose states are not known yet, in this order."""

    def show(self, event: llmb.Event) -> None:
        """Show what an event changes, if anything."""

    def show_activity(self, activity: str) -> None:
        """Show what llmb is doing until the next event, such as ``connecting to eos``."""


@contextmanager
def open_view() -> Iterator[View]:
    """Open the view that suits standard error."""
    if output.quiet.get():
        yield QuietView()
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") in (None, "", "dumb", "unknown"):  # which move no cursor
        with PlainView() as plain:
            yield plain
        return
    from llmb.cli.views.live_area import LinesAbove, LiveArea
    from llmb.cli.views.live_view import LiveView

    area = LiveArea(output.console(stderr=True))
    view = LiveView(area)
    try:
        with redirect_stderr(LinesAbove(area)), Repeater(view.draw_if_changed, REDRAW_INTERVAL_S):
            yield view
    finally:
        view.close()


@contextmanager
def show_activity(activity: str) -> Iterator[None]:
    """Show on a terminal what a command is doing in the block, such as ``checking eos``."""
    if not sys.stderr.isatty():
        yield
        return
    with open_view() as view:
        view.show_activity(activity)
        yield


class QuietView:
    """Shows nothing, for ``--quiet``."""

    def add_runs(self, run_ids: Iterable[str]) -> None:
        """Show nothing."""

    def show(self, event: llmb.Event) -> None:
        """Show nothing."""

    def show_activity(self, activity: str) -> None:
        """Show nothing."""


class PlainView:
    """Prints a line for every change of state, and for each tenth of the steps."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[object, ...]] = {}
        self._timer: threading.Timer | None = None

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop_timer()

    def add_runs(self, run_ids: Iterable[str]) -> None:
        """Print nothing, because each run has a line once its state is known."""

    def show(self, event: llmb.Event) -> None:
        """Print a line if the event changes a run's state, phase, detail or tenth of the steps."""
        match event:
            case llmb.Progress():
                self._show_progress(event)
            case llmb.Skipped():
                self._print(describe_skipped(event))
        if notice := describe_notice(event):
            self._print(f"llmb: {notice}")

    def show_activity(self, activity: str) -> None:
        """Print the activity if it takes longer than a moment."""
        self._stop_timer()
        self._timer = threading.Timer(ACTIVITY_DELAY_S, output.print_progress, [f"{activity} ..."])
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer.join()

    def _print(self, line: str) -> None:
        self._stop_timer()
        output.print_progress(line)

    def _show_progress(self, progress: llmb.Progress) -> None:
        shown: tuple[object, ...] = (progress.state, progress.detail)
        if progress.state == "running":
            tenth = None if progress.step is None else progress.step * PLAIN_PARTS // (progress.steps or 1)
            shown += (progress.phase, tenth)
        if self._shown.get(progress.run_id) != shown:
            self._shown[progress.run_id] = shown
            self._print(describe_progress(progress))


class Repeater:
    """Calls a function again and again in a thread, until the ``with`` block ends.

    If the function fails, it is not called again, and the end of the block raises its error.
    """

    def __init__(self, act: Callable[[], None], pause_s: float) -> None:
        self._act = act
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def _repeat(self) -> None:
        try:
            while not self._ended.wait(self._pause_s):
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


def describe_progress(progress: llmb.Progress) -> str:
    """Return one line: run, state or phase, step, step time, MFU, time left."""
    parts = [progress.phase or "running" if progress.state == "running" else progress.state]
    if progress.detail:
        parts.append(progress.detail)
    if progress.state == "running":
        if progress.step is not None:
            parts.append(f"step {progress.step} of {progress.steps}")
        if progress.step_time_s is not None:
            parts.append(f"{progress.step_time_s:.3g} s/step")
        if progress.mfu is not None:
            parts.append(f"MFU {100 * progress.mfu:.1f} %" if progress.mfu <= 1 else "MFU above 100 % (wrong peak)")
    if progress.left_s is not None:
        parts.append(f"{format_clock(progress.left_s)} left")
    return f"{progress.run_id}: {', '.join(parts)}"
