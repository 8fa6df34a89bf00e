"""The live view: a table of runs on a terminal that is up to date until all runs have ended."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import attrs
from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.live_area import LiveArea
from llmb.cli.views.live_table import RunRow, table_of_runs, update_row
from llmb.cli.views.plain_view import View, describe_shared_event


class LiveView(View):
    """Keeps a table of all runs at the bottom of the terminal, with messages above it.

    Another thread may draw the table while a run is updated.
    """

    def __init__(self, area: LiveArea) -> None:
        self._area = area
        self._rows: dict[str, RunRow] = {}
        self._activity = ""
        self._drawn: object = None

    def add_runs(self, run_ids: Iterable[str]) -> None:
        """Show these runs, whose states are not known yet, in this order."""
        self._rows |= {run_id: RunRow(run_id=run_id) for run_id in run_ids}

    def show_activity(self, activity: str) -> None:
        """Show below the table what llmb is doing until the next event."""
        self._activity = activity

    def show(self, event: llmb.Event) -> None:
        """Update the row of a run, or print a message above the table."""
        if not isinstance(event, llmb.Planned):
            self._activity = ""
        if notice := describe_shared_event(event):
            self._area.print_above(Text("\n".join(output.message_lines(notice, self._area.size[0]))))
        elif run_id := event.run_id:
            row = self._rows.get(run_id, RunRow(run_id=run_id))
            result = _recorded_result(run_id) if isinstance(event, llmb.Ended) else None
            self._rows[run_id] = update_row(row, event, result)

    def forget_position(self) -> None:
        """Draw the table again below all other output, because another program has used the terminal."""
        self._area.forget_position()
        self._drawn = None

    def draw_if_changed(self) -> None:
        """Draw the table if a row, the activity or the size of the terminal changed."""
        rows, activity, size = tuple(self._rows.values()), self._activity, self._area.size
        if (rows, activity, size) != self._drawn:
            self._area.show(table_of_runs(rows, activity, *size))
            self._drawn = (rows, activity, size)

    def close(self) -> None:
        """Draw the final table, which stays on the screen. Runs without an event have their recorded states."""
        self._activity = ""
        for run_id, row in self._rows.items():
            if not row.state and (result := _recorded_result(run_id)):
                self._rows[run_id] = attrs.evolve(row, state=result.state)
        self.draw_if_changed()


def _recorded_result(run_id: str) -> llmb.RunResult | None:
    """Return the result of a run, or None if its record is damaged, which the command itself reports."""
    with suppress(llmb.LlmbError):
        return llmb.find_run(run_id)
    return None
