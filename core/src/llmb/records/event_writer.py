"""Recording the events of many runs together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from llmb.records.create_records import WRITERS
from llmb.records.record import RunRecord
from llmb.state_machine.events import Event
from llmb.values.errors import RecordError

FEW = 4
"""Runs whose events are recorded one after the other, without threads."""


class EventWriter:
    """Appends events to the records of their runs. The disk syncs many records at a time."""

    def __init__(self, records: Mapping[str, RunRecord]) -> None:
        self._records = records
        self._threads: ThreadPoolExecutor | None = None

    def write(self, events: Iterable[Event]) -> dict[str, Exception]:
        """Record events and sync them. Return the runs whose events could not be recorded, each with the error."""
        by_run: dict[str, list[Event]] = {}
        for event in events:
            by_run.setdefault(event.run_id, []).append(event)
        return {run_id: error for run_id, error in self._write_each(by_run) if error}

    def close(self) -> None:
        """End the threads. A later call starts them again."""
        if self._threads:
            self._threads.shutdown()
            self._threads = None

    def _write_each(self, by_run: Mapping[str, list[Event]]) -> Iterator[tuple[str, Exception | None]]:
        if len(by_run) <= FEW:
            yield from map(self._write_one, by_run.items())
            return
        self._threads = self._threads or ThreadPoolExecutor(WRITERS, thread_name_prefix="llmb-events")
        yield from self._threads.map(self._write_one, by_run.items())

    def _write_one(self, item: tuple[str, list[Event]]) -> tuple[str, Exception | None]:
        run_id, events = item
        try:
            self._records[run_id].add_events(events)
        except RecordError as error:
            return run_id, error
        return run_id, None
