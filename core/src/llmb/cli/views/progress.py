"""The progress of runs: one live line per run on a terminal, plain lines elsewhere. Both go to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import llmb
from llmb.cli import output

if TYPE_CHECKING:
    from rich.live import Live

PLAIN_PARTS = 10
"""Plain lines per run while it trains: one for each tenth of the steps."""

SHORTEST_ID = 10
"""The least number of characters of a run id on a narrow terminal."""


class View(Protocol):
    """Shows events to the user."""

    def show(self, event: llmb.Event) -> None:
        """Show what an event changes, if anything."""


@contextmanager
def open_view() -> Iterator[View]:
    """Open the view that suits standard error."""
    if not sys.stderr.isatty():
        yield PlainView()
        return
    from rich.live import Live

    with Live(console=output.console(stderr=True), auto_refresh=False, transient=True) as live:
        yield LiveView(live)


class PlainView:
    """Prints a line for every change of state, and for each tenth of the steps."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[object, ...]] = {}

    def show(self, event: llmb.Event) -> None:
        """Print a line if the event changes a run's state, phase, detail or tenth of the steps."""
        match event:
            case llmb.Progress():
                self._show_progress(event)
            case llmb.Skipped():
                output.print_progress(describe_skipped(event))
        if notice := describe_notice(event):
            output.print_message(notice)

    def _show_progress(self, progress: llmb.Progress) -> None:
        shown: tuple[object, ...] = (progress.state, progress.detail)
        if progress.state == "running":
            tenth = None if progress.step is None else progress.step * PLAIN_PARTS // (progress.steps or 1)
            shown += (progress.phase, tenth)
        if self._shown.get(progress.run_id) != shown:
            self._shown[progress.run_id] = shown
            output.print_progress(describe_progress(progress))


class LiveView:
    """Keeps one line per unfinished run on the terminal up to date, with messages above the lines."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._lines: dict[str, str] = {}

    def show(self, event: llmb.Event) -> None:
        """Update the lines, or print a message above them."""
        if notice := describe_notice(event):
            self._live.console.print(f"llmb: {llmb.printable_line(notice)}", markup=False, soft_wrap=True)
        match event:
            case llmb.Progress(run_id=run_id, state=state) if state not in llmb.END_STATES:
                self._lines[run_id] = describe_progress(event, self._live.console.width)
            case llmb.Progress() | llmb.Ended():  # the result is printed after all runs have ended
                self._lines.pop(event.run_id, None)
            case llmb.Skipped(run_id=run_id):  # so is the complete error
                self._lines[run_id] = describe_skipped(event)
            case _:
                return
        self._draw()

    def _draw(self) -> None:
        from rich.text import Text

        height = max(1, self._live.console.height - 1)
        lines = "\n".join(llmb.printable_line(line) for line in list(self._lines.values())[:height])
        self._live.update(Text(lines, no_wrap=True, overflow="ellipsis"), refresh=True)


def describe_notice(event: llmb.Event) -> str:
    """Return the sentence in an event that concerns more than one run, or an empty string."""
    match event:
        case llmb.Note(text=text):
            return text
        case llmb.TargetLost(reason=reason):
            return f"{reason}; retrying (jobs there continue)"
        case llmb.TargetBack(target=target):
            return f"{target} responds again"
    return ""


def describe_skipped(event: llmb.Skipped) -> str:
    """Return one line: the run, and the beginning of the error. The complete error is raised at the end."""
    return f"{event.run_id}: skipped, {event.reason.removeprefix(f'{event.run_id}: ').partition(chr(10))[0]}"


def describe_progress(progress: llmb.Progress, width: int | None = None) -> str:
    """Return one line: run, state or phase, step, step time, MFU, time left.

    If the line is wider than ``width``, shorten the end of the run id. Its beginning is unique.
    """
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
        parts.append(f"{clock(progress.left_s)} left")
    description = ", ".join(parts)
    run_id = progress.run_id
    room = len(run_id) if width is None else max(width - len(description) - len(": "), SHORTEST_ID)
    return f"{run_id if len(run_id) <= room else f'{run_id[: room - 1]}…'}: {description}"


def clock(seconds: float) -> str:
    """Return a duration in seconds as ``1:02:03`` or ``2:03``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
