"""The file events.jsonl of a record: one event per line, appended and synced."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from llmb.files import open_regular
from llmb.records.record_files import read_file, unless_missing, write_synced
from llmb.state_machine.events import Event, decode_event, encode_event
from llmb.values.errors import RecordError


class EventsFile:
    """The events of one run, and how much of them this process has read or written."""

    def __init__(self, file: Path, run_id: str) -> None:
        self._file = file
        self._run_id = run_id
        self._bytes_read = 0
        self._first_events: list[Event] = []  # of a file that this process created, until `read_new` returns them

    def create(self, events: Sequence[Event]) -> None:
        """Write the first events. Raise OSError."""
        lines = _encode(events)
        write_synced(self._file, lines)
        self._first_events, self._bytes_read = [*events], len(lines)

    def append(self, events: Sequence[Event]) -> None:
        """Append events and sync them. Raise OSError. Lines that the disk has no space for are removed."""
        lines = _encode(events)
        descriptor = open_regular(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                lines = b"\n" + lines  # readers drop the torn line before it
            if os.write(descriptor, lines) != len(lines):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
            self._bytes_read = size + len(lines)
        finally:
            os.close(descriptor)

    def read(self) -> list[Event]:
        """Return all events. Lines that are no events are dropped.

        Raise RecordError if the file is unreadable, or has complete lines but no event: then the state is unknown.
        """
        events, complete_bytes = self._decode(0)
        if complete_bytes and not events:
            raise RecordError(f"{self._file} is damaged: no line is an event of a run")
        return events

    def read_new(self) -> list[Event]:
        """Return the first events of a new file, and those that other processes appended since the last call.

        A torn last line is left for the next call. Raise RecordError.
        """
        events, self._first_events = self._first_events, []
        found = unless_missing(Path.stat, self._file)
        if found and found.st_size > self._bytes_read:
            others, self._bytes_read = self._decode(self._bytes_read)
            events += others
        return events

    def _decode(self, offset: int) -> tuple[list[Event], int]:
        """Return the events beyond ``offset`` bytes, and the offset up to which lines are complete."""
        data = (read_file(self._file) or b"")[offset:]
        *lines, last = data.split(b"\n")
        if decode_event(last, self._run_id) is None:
            data = data[: len(data) - len(last)]
        decoded = (decode_event(line, self._run_id) for line in (*lines, last))
        return [event for event in decoded if event], offset + len(data)


def _encode(events: Sequence[Event]) -> bytes:
    return "".join(f"{encode_event(event)}\n" for event in events).encode()
