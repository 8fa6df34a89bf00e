"""Recording the events of many runs together."""

from collections.abc import Iterable, Mapping
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
        errors: Iterable[Exception | None]
        if len(by_run) <= FEW:
            errors = map(self._write_run, by_run, by_run.values())
        else:
            self._threads = self._threads or ThreadPoolExecutor(WRITERS, thread_name_prefix="llmb-events")
            errors = self._threads.map(self._write_run, by_run, by_run.values())
        return {run_id: error for run_id, error in zip(by_run, errors, strict=True) if error}

    def close(self) -> None:
        """End the threads. A later call starts them again."""
        if self._threads:
            self._threads.shutdown()
            self._threads = None

    def _write_run(self, run_id: str, events: list[Event]) -> Exception | None:
        try:
            self._records[run_id].add_events(events)
        except RecordError as error:
            return error
        return None
