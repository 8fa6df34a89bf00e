"""The last progress of each followed run, written into its record."""

import time
from collections.abc import Mapping

from attrs import evolve

from llmb.drive.session_run import SessionRun
from llmb.records.last_progress import read_progress, write_progress
from llmb.state_machine.events import Ended, Event, Progress

WRITE_INTERVAL_S = 2.0
"""Least time between two writes of a run's progress."""

ProgressKey = tuple[int, str, int | None]
"""How far a job is: attempt, phase and step."""


class ProgressFiles:
    """Keeps the last progress of the runs that this process drives in their records, for other processes."""

    def __init__(self, runs: Mapping[str, SessionRun]) -> None:
        self._runs = runs
        self._written_s: dict[str, float] = {}
        self._seen: dict[str, tuple[ProgressKey, float]] = {}  # how far each run is, and since when
        self._unwritten: dict[str, tuple[Progress, int]] = {}  # with the number of the attempt

    def keep(self, event: Event) -> None:
        """Keep the progress of a running job until it is written, with the time of its last step."""
        if isinstance(event, Progress) and event.state == "running":
            attempt = self._runs[event.run_id].logs.attempt
            place = (attempt, event.phase, event.step)
            seen, since = self._seen.get(event.run_id) or self._read_seen(event.run_id, attempt)
            event = evolve(event, time=since) if seen == place else event
            self._seen[event.run_id] = place, event.time
            self._unwritten[event.run_id] = event, attempt
        elif isinstance(event, Progress | Ended):
            self._unwritten.pop(event.run_id, None)

    def _read_seen(self, run_id: str, attempt: int) -> tuple[ProgressKey | None, float]:
        """Return how far the run was when another process followed it, and since when. Return None if it is unknown."""
        progress, since = read_progress(self._runs[run_id].record, attempt)
        return (attempt, progress.phase, progress.step) if progress and since else None, since

    def write(self, *, now: bool = False) -> None:
        """Write the progress of the runs whose last write is long enough ago or, with ``now``, of all runs."""
        clock_s = time.monotonic()
        for run_id in list(self._unwritten):
            last_s = self._written_s.get(run_id)
            if now or last_s is None or clock_s - last_s >= WRITE_INTERVAL_S:
                progress, attempt = self._unwritten.pop(run_id)
                record = self._runs[run_id].record
                if record.locked:
                    write_progress(record, progress, attempt)
                    self._written_s[run_id] = clock_s
