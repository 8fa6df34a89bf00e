"""How runs are watched: one live line each on a terminal, plain lines elsewhere. All of it on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from llmb.drive.events import Progress
from llmb.drive.observe import Observer
from llmb.values.job_status import END_STATES

if TYPE_CHECKING:
    from rich.live import Live

PLAIN_PARTS = 10  # a plain line for each tenth of the steps
SHORTEST_ID = 10  # characters of a run's id on a narrow terminal


@contextmanager
def observer() -> Iterator[Observer]:
    """The observer that suits standard error."""
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveLines(live)


def describe(progress: Progress, width: int | None = None) -> str:
    """One line: the run, its state or phase, step of how many, step time, MFU, time left.

    Where the line is wider than ``width``, the run's id is shortened first: it begins with what is unique.
    """
    parts = [progress.phase or "running" if progress.state == "running" else progress.state]
    if progress.detail:
        parts.append(progress.detail)
    if progress.step is not None and progress.state == "running":
        parts.append(f"step {progress.step} of {progress.steps}")
    if progress.step_time_s is not None and progress.state == "running":
        parts.append(f"{progress.step_time_s:.3g} s/step")
    if progress.mfu is not None and progress.state == "running":
        parts.append(f"MFU {100 * progress.mfu:.1f} %")
    if progress.left_s is not None:
        parts.append(f"{clock(progress.left_s)} left")
    told = ", ".join(parts)
    room = len(progress.run_id) if width is None else max(width - len(told) - len(": "), SHORTEST_ID)
    run_id = progress.run_id if len(progress.run_id) <= room else f"{progress.run_id[: room - 1]}…"
    return f"{run_id}: {told}"


def clock(seconds: float) -> str:
    """Seconds as ``1:02:03`` or ``2:03``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class PlainLines:
    """A line for every change of state, and for each tenth of the steps."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[object, ...]] = {}

    def progress(self, progress: Progress) -> None:
        """Print the line, unless its like was printed before."""
        part = (progress.step or 0) * PLAIN_PARTS // (progress.steps or 1) if progress.step is not None else None
        told = (progress.state, progress.phase if progress.state == "running" else "", progress.detail, part)
        if self._told.get(progress.run_id) != told:
            self._told[progress.run_id] = told
            typer.echo(describe(progress), err=True)

    def message(self, text: str) -> None:
        """Print it."""
        typer.echo(f"llmb: {text}", err=True)


class LiveLines:
    """One line a run that has not ended, drawn anew on every change."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._lines: dict[str, str] = {}

    def progress(self, progress: Progress) -> None:
        """Draw the lines; what has ended is told by the result below."""
        from rich.text import Text

        self._lines[progress.run_id] = describe(progress, self._live.console.width)
        if progress.state in END_STATES:
            self._lines.pop(progress.run_id)
        height = max(1, self._live.console.height - 1)
        lines = list(self._lines.values())[:height]
        self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def message(self, text: str) -> None:
        """Print it above the lines."""
        self._live.console.print(f"llmb: {text}")
