"""Progress as plain lines on standard error, and the base of all views of progress."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import llmb
from llmb.cli import output
from llmb.cli.views.numbers import format_clock

PLAIN_PARTS = 10
"""Plain lines per run while it trains: one for each tenth of the steps."""

ACTIVITY_DELAY_S = 0.5
"""Time after which a plain line names an activity. Most activities are over before."""


class View:
    """Shows events to the user. This base class shows nothing, as ``--quiet`` requires."""

    def add_runs(self, run_ids: Iterable[str]) -> None:
        """Show these runs, whose states are not known yet, in this order."""

    def show(self, event: llmb.Event) -> None:
        """Show what an event changes, if anything."""

    def show_activity(self, activity: str) -> None:
        """Show what llmb is doing until the next event, such as ``connecting to eos``."""


class PlainView(View):
    """Prints a line for every change of state, and for each tenth of the steps."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[object, ...]] = {}
        self._timer: threading.Timer | None = None

    def close(self) -> None:
        """Stop the timer, so that no further activity is printed."""
        self._stop_timer()

    def show(self, event: llmb.Event) -> None:
        """Print a line if the event changes a run's state, phase, detail or tenth of the steps."""
        match event:
            case llmb.Progress():
                self._show_progress(event)
            case llmb.Skipped(run_id=run_id, reason=reason):  # the complete error is raised at the end
                begin = reason.removeprefix(f"{run_id}: ").partition("\n")[0]
                self._print(f"{run_id}: skipped, {begin}")
        if notice := describe_shared_event(event):
            self._stop_timer()
            output.print_message(notice)

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


def describe_progress(progress: llmb.Progress) -> str:
    """Return one line: run, state or phase, step, step time, MFU, time left."""
    parts = [progress.phase or "running" if progress.state == "running" else progress.state]
    parts += [progress.detail] if progress.detail else []
    parts += describe_speed(progress, progress.steps) if progress.state == "running" else []
    return f"{progress.run_id}: {', '.join(parts)}"


def describe_speed(progress: llmb.Progress | llmb.RunProgress, steps: int | None) -> list[str]:
    """Return what is known of a running job: step, step time, MFU, time left."""
    parts = []
    if progress.step is not None:
        parts.append(f"step {progress.step} of {steps}")
    if progress.step_time_s is not None:
        parts.append(f"{progress.step_time_s:.3g} s/step")
    if progress.mfu is not None:
        parts.append(f"MFU {100 * progress.mfu:.1f} %")
    if progress.left_s is not None:
        parts.append(f"{format_clock(progress.left_s)} left")
    return parts


def describe_shared_event(event: llmb.Event) -> str:
    """Return the sentence in an event that concerns more than one run, or an empty string.

    Lines of a specification below the sentence stay lines, so that they can be copied.
    """
    match event:
        case llmb.Note(text=text):
            return text.replace("\n", output.BELOW)
        case llmb.TargetLost(reason=reason):
            return f"{reason}; retrying (jobs there continue)"
        case llmb.TargetBack(target=target):
            return f"{target} responds again"
    return ""
