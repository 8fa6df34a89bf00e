"""The record of one run: a directory of files that are the truth about the run.

``run.toml``: the run as a spec. ``job.sh``: the submitted script. ``events.jsonl``: the recorded events. ``logs/``:
copies of the logs; the size of a copy is the offset up to which the log was read. ``steps.csv``, ``result.json``: the
result.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import shutil
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from llmb.drive.events import Event, Planned, decode_event, encode_event
from llmb.drive.state_machine import replay
from llmb.drive.unit_state import State
from llmb.files import write_atomically
from llmb.paths import home_folder
from llmb.values.errors import RecordError
from llmb.values.steps import Step

STEP_COLUMNS = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of", "attempt")


class RunRecord:
    """One run's directory under ``$LLMB_HOME/runs``. ``spec`` are the tables of run.toml if this process writes it."""

    def __init__(self, directory: Path, spec: dict[str, Any] | None = None) -> None:
        self.directory = directory
        self._spec = spec
        self._lock: int | None = None

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.directory.name

    @property
    def logs(self) -> Path:
        """The folder with the copies of the run's logs."""
        return self.directory / "logs"

    def create(self, run_toml: str, job: str) -> None:
        """Create the record. It exists from the moment at which run.toml has its name. Raise RecordError."""
        with _report_write_errors(self.directory, f"nothing was started; {OTHER_HOME}"):
            self.logs.mkdir(parents=True, exist_ok=True)
            planned = encode_event(stamp(Planned(run_id=self.run_id)))
            _write_synced(self.directory / "events.jsonl", f"{planned}\n".encode())
            _write_synced(self.directory / "job.sh", job.encode())
            write_atomically(self.directory / "run.toml", run_toml.encode())

    @property
    def complete(self) -> bool:
        """True if the record was created to its end."""
        return (self.directory / "run.toml").exists()

    def remove(self) -> None:
        """Delete a record that was just created."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def add_provenance(self, more: Mapping[str, Any]) -> None:
        """Add to run.toml what the job reported about its machines. Leave a damaged file alone. Raise RecordError."""
        import tomli_w

        with _report_write_errors(self.directory):
            try:
                spec = tomllib.loads((self.directory / "run.toml").read_text(encoding="utf-8"))
            except ValueError:
                return
            spec["provenance"] = {**spec.get("provenance", {}), **more}
            self._spec = None
            write_atomically(self.directory / "run.toml", tomli_w.dumps(spec).encode())

    def add_events(self, events: Sequence[Event]) -> None:
        """Append events and sync them. What they announce is done only after this returns. Raise RecordError."""
        lines = "".join(f"{encode_event(event)}\n" for event in events).encode()
        with _report_write_errors(self.directory):
            descriptor = os.open(self.directory / "events.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    lines = b"\n" + lines  # readers drop the torn line before it
                if os.write(descriptor, lines) != len(lines):
                    os.ftruncate(descriptor, size)
                    raise OSError(28, "No space left on device")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def spec(self) -> dict[str, Any]:
        """Return the run as a spec. Raise RecordError if the file is damaged."""
        if self._spec is not None:
            return self._spec
        file = self.directory / "run.toml"
        spec: dict[str, Any] = {}
        with suppress(ValueError):
            spec = tomllib.loads((_read(file) or b"").decode())
        if not isinstance(spec.get("workload"), dict):
            raise RecordError(f"{file} is damaged: it is no longer the spec of a run")
        return spec

    def events(self, offset: int = 0) -> tuple[list[Event], int]:
        """Return the events beyond ``offset`` bytes and the offset up to which they were read. Raise RecordError.

        A torn last line is left for the next call. Other lines that are no events are dropped.
        """
        data = (_read(self.directory / "events.jsonl") or b"")[offset:]
        *lines, last = data.split(b"\n")
        if decode_event(last, self.run_id) is None:
            data = data[: len(data) - len(last)]
        decoded = (decode_event(line, self.run_id) for line in (*lines, last))
        return [event for event in decoded if event], offset + len(data)

    @property
    def events_size(self) -> int:
        """Bytes of recorded events."""
        with suppress(OSError):
            return (self.directory / "events.jsonl").stat().st_size
        return 0

    def state(self) -> State:
        """Return the state that the recorded events add up to. Raise RecordError."""
        return replay(self.events()[0])

    @property
    def ended(self) -> bool:
        """True if the run is over."""
        return self.state().stage == "ended"

    def write_result(self, result: Mapping[str, Any], steps: Iterable[Step]) -> None:
        """Write the steps and the result, each atomically. Raise RecordError."""
        with _report_write_errors(self.directory):
            write_atomically(self.directory / "steps.csv", steps_csv(steps).encode())
            write_atomically(self.directory / "result.json", (json.dumps(result, indent=2) + "\n").encode())

    def result(self) -> dict[str, Any] | None:
        """Return the result, or None before there is one. Raise RecordError if the file is damaged or unreadable."""
        data = _read(self.directory / "result.json")
        if data is None:
            return None
        result = None
        with suppress(ValueError):
            result = json.loads(data)
        if not isinstance(result, dict):
            raise RecordError(f"{self.directory / 'result.json'} is damaged: it is no longer the result of a run")
        return result

    def append_log(self, name: str, data: bytes) -> None:
        """Append new bytes to the copy of a log. Raise RecordError; bytes that did not fit are read again later."""
        with _report_write_errors(self.directory):
            self.logs.mkdir(exist_ok=True)
            descriptor = os.open(self.logs / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)

    def sync_logs(self) -> None:
        """Sync the copies of all logs to disk. Raise RecordError."""
        with _report_write_errors(self.directory), suppress(FileNotFoundError):
            for copy in self.logs.iterdir():
                with open(copy, "rb") as file:
                    os.fsync(file.fileno())

    def log_size(self, name: str) -> int:
        """Return the size of a log's copy in bytes, which is how much of the log was read."""
        with suppress(FileNotFoundError):
            return (self.logs / name).stat().st_size
        return 0

    def request_cancel(self) -> None:
        """Request that the process that drives this run, now or later, cancels it. Raise RecordError."""
        with _report_write_errors(self.directory):
            (self.directory / "cancel").touch()

    @property
    def cancel_requested(self) -> int:
        """The time of the last request to cancel the run, in nanoseconds since 1970, or 0."""
        with suppress(FileNotFoundError):
            return (self.directory / "cancel").stat().st_mtime_ns
        return 0

    @property
    def locked(self) -> bool:
        """True if this process drives the run."""
        return self._lock is not None

    def try_lock(self) -> bool:
        """Lock the run for this process. Return False if another process holds the lock, which the kernel frees."""
        if self._lock is None:
            with _report_write_errors(self.directory):
                descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._lock = descriptor
        return True

    def unlock(self) -> None:
        """Let other processes drive this run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


OTHER_HOME = "set LLMB_HOME to use another folder for all records"


def stamp(event: Event) -> Event:
    """Return the event with the present time."""
    return attrs.evolve(event, time=round(time.time(), 3))


def runs_folder() -> Path:
    """Return the folder of all records."""
    return home_folder() / "runs"


def steps_csv(steps: Iterable[Step]) -> str:
    """Return a CSV with one line per step: the common columns, then everything else that was printed."""
    rows = [(step, {name: getattr(step, name) for name in STEP_COLUMNS}) for step in steps]
    more = sorted({name for step, _ in rows for name in step.figures})
    text = io.StringIO()
    writer = csv.DictWriter(text, [*STEP_COLUMNS, *more], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | dict(step.figures) for step, row in rows)
    return text.getvalue()


def _write_synced(file: Path, data: bytes) -> None:
    """Write a file of a record that does not exist yet. Raise OSError."""
    with open(file, "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())


def _read(file: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist. Raise RecordError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def _report_write_errors(directory: Path, remedy: str = "") -> Iterator[None]:
    """Turn an OSError into a RecordError with a remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = remedy or f"nothing is lost; fix this, then resume with `llmb attach {directory.name}`"
        raise RecordError(f"cannot write the record {directory}: {reason}; {remedy}") from error
