"""The record of one run: a directory of files that are the truth about the run.

``run.toml``: the run as a spec. ``job.sh``: the script as planned when the run was recorded. ``events.jsonl``: the
recorded events. ``logs/``: copies of the logs; the size of a copy is the offset up to which the log was read.
``progress.json``: the last known progress of a running job. ``steps.csv``, ``result.json``: the result.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from llmb.files import file_exists, lock_file, open_regular, read_regular, write_atomically
from llmb.logs.steps.steps_csv import steps_csv
from llmb.records.events_file import EventsFile
from llmb.records.record_files import OTHER_HOME, read_file, report_write_errors, unless_missing, write_synced
from llmb.state_machine.apply_events import replay
from llmb.state_machine.events import Event, Planned
from llmb.state_machine.units import State
from llmb.values.errors import RecordError, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.steps import Step
from llmb.values.toml_files import parse_toml

TASK_LOG = "preparation.log"  # the copy of a failed task's log


class RunRecord:
    """One run's directory under ``$LLMB_HOME/runs``. ``spec`` are the tables of run.toml if this process writes it.

    ``files`` are the texts of further files of a new record, by their paths in it.
    """

    def __init__(
        self, directory: Path, spec: dict[str, Any] | None = None, files: Mapping[str, str] = FrozenMap()
    ) -> None:
        self.directory = directory
        self.files = files
        self._spec = spec
        self._lock: int | None = None
        self._events = EventsFile(directory / "events.jsonl", directory.name)

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.directory.name

    @property
    def logs(self) -> Path:
        """The folder with the copies of the run's logs."""
        return self.directory / "logs"

    def create(self, run_toml: str, job: str, remedy: str = "", *, more_events: Sequence[Event] = ()) -> None:
        """Create the record. It exists from the moment at which run.toml has its name. Raise RecordError."""
        with report_write_errors(self.directory, remedy):
            self.directory.mkdir(parents=True, exist_ok=True)
            events = [stamp(Planned(run_id=self.run_id)), *more_events]
            self._events.create(events)
            write_synced(self.directory / "job.sh", job.encode())
            for name, text in self.files.items():
                (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
                write_synced(self.directory / name, text.encode())
            write_atomically(self.directory / "run.toml", run_toml.encode())

    @property
    def complete(self) -> bool:
        """True if the record was created to its end."""
        return file_exists(self.directory / "run.toml")

    def remove(self) -> None:
        """Delete a record that was just created."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def add_provenance(self, more: Mapping[str, Any]) -> None:
        """Add to run.toml what the job reported about its machines. Leave a damaged file alone. Raise RecordError."""
        import tomli_w

        with report_write_errors(self.directory):
            try:
                spec = parse_toml(read_regular(self.directory / "run.toml").decode())
            except (UnicodeDecodeError, SpecError):
                return
            spec["provenance"] = {**spec.get("provenance", {}), **more}
            self._spec = None
            write_atomically(self.directory / "run.toml", tomli_w.dumps(spec).encode())

    def add_events(self, events: Sequence[Event]) -> None:
        """Append events and sync them. What they announce is done only after this returns. Raise RecordError."""
        with report_write_errors(self.directory):
            self._events.append(events)

    def spec(self) -> dict[str, Any]:
        """Return the run as a spec. Raise RecordError if the file is damaged."""
        if self._spec is not None:
            return self._spec
        file = self.directory / "run.toml"
        spec: dict[str, Any] = {}
        with suppress(UnicodeDecodeError, SpecError):
            spec = parse_toml((read_file(file) or b"").decode())
        if "workload" not in spec or not all(isinstance(table, dict) for table in spec.values()):
            raise RecordError(f"{file} is damaged: it is no longer the spec of a run")
        return spec

    def events(self) -> list[Event]:
        """Return the recorded events. Raise RecordError if the file is unreadable or damaged."""
        return self._events.read()

    def new_events(self) -> list[Event]:
        """Return the first events of a new record, and those that other processes recorded since the last call.

        Raise RecordError.
        """
        return self._events.read_new()

    def state(self) -> State:
        """Return the state that the recorded events add up to. Raise RecordError."""
        return replay(self.events())

    @property
    def ended(self) -> bool:
        """True if the run is over."""
        return self.state().stage == "ended"

    def write_result(self, result: Mapping[str, Any], steps: Iterable[Step]) -> None:
        """Write the steps and the result, each atomically. Raise RecordError."""
        with report_write_errors(self.directory):
            write_atomically(self.directory / "steps.csv", steps_csv(steps).encode())
            write_atomically(self.directory / "result.json", (json.dumps(result, indent=2) + "\n").encode())

    def result(self) -> dict[str, Any] | None:
        """Return the result, or None before there is one. Raise RecordError if the file is damaged or unreadable."""
        data = read_file(self.directory / "result.json")
        if data is None:
            return None
        result = None
        with suppress(ValueError, RecursionError):
            result = json.loads(data)
        if not isinstance(result, dict):
            raise RecordError(f"{self.directory / 'result.json'} is damaged: it is no longer the result of a run")
        return result

    def write_task_log(self, data: bytes) -> None:
        """Keep the end of the log of the task because of which this run fails. Raise RecordError."""
        with report_write_errors(self.directory):
            self.logs.mkdir(exist_ok=True)
            write_atomically(self.logs / TASK_LOG, data, mode=0o600)

    def append_log(self, name: str, data: bytes) -> None:
        """Append new bytes to the copy of a log. Raise RecordError; bytes that did not fit are read again later."""
        with report_write_errors(self.directory):
            self.logs.mkdir(exist_ok=True)
            descriptor = open_regular(self.logs / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)

    def sync_logs(self) -> None:
        """Sync the copies of all logs to disk. Raise RecordError."""
        with report_write_errors(self.directory), suppress(FileNotFoundError):
            for copy in self.logs.iterdir():
                with open(copy, "rb", opener=open_regular) as file:
                    os.fsync(file.fileno())

    def log_size(self, name: str) -> int:
        """Return the size of a log's copy in bytes, which is how much of the log was read. Raise RecordError."""
        found = unless_missing(Path.stat, self.logs / name)
        return found.st_size if found else 0

    def request_cancel(self) -> None:
        """Request that the process that drives this run, now or later, cancels it. Raise RecordError."""
        with report_write_errors(self.directory, f"fix this, then repeat `llmb cancel {self.run_id}`"):
            (self.directory / "cancel").touch()

    @property
    def cancel_requested_ns(self) -> int:
        """The time of the last request to cancel the run, in nanoseconds since 1970, or 0. Raise RecordError."""
        found = unless_missing(Path.stat, self.directory / "cancel")
        return found.st_mtime_ns if found else 0

    def is_cancel_requested(self) -> bool:
        """Check whether the user requested to cancel the run. A request that is unreadable counts as none."""
        with suppress(RecordError):
            return self.cancel_requested_ns > 0
        return False

    @property
    def locked(self) -> bool:
        """True if this process drives the run."""
        return self._lock is not None

    def try_lock(self) -> bool:
        """Lock the run for this process. Return False if another process holds the lock, which the kernel frees.

        Raise RecordError if the file system cannot lock.
        """
        if self._lock is None:
            with report_write_errors(self.directory / "lock", f"fix this, or {OTHER_HOME}"):
                self._lock = lock_file(self.directory / "lock")
        return self._lock is not None

    def unlock(self) -> None:
        """Let other processes drive this run."""
        lock, self._lock = self._lock, None  # first, as Ctrl-C may come now, and a later call must not close it again
        if lock is not None:
            os.close(lock)


def stamp(event: Event) -> Event:
    """Return the event with the present time."""
    return attrs.evolve(event, time=round(time.time(), 3))
