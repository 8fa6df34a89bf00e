"""The record of a run: files that are the truth. Nothing here knows how they came to be.

``run.toml`` the run as a spec, ``job.sh`` what was submitted, ``events.jsonl`` every change of state, ``logs/`` copies
of the logs (a copy's size is the offset of what has been read), ``steps.csv``, ``result.json``.
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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from llmb.drive.pending_sweep import PendingSweep
from llmb.files import write_atomically
from llmb.paths import home_folder
from llmb.values.errors import RecordError
from llmb.values.job_status import END_STATES
from llmb.values.steps import Step

STEP_COLUMNS = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of", "attempt")

ANOTHER_HOME = "LLMB_HOME can name another folder for all records"


class RunRecord:
    """One run's directory under ``$LLMB_HOME/runs``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock: int | None = None

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.directory.name

    @property
    def logs(self) -> Path:
        """The folder of the copies of the run's logs."""
        return self.directory / "logs"

    def create(self, run_toml: str, job: str) -> None:
        """Make the record; the spec and the job are there before the first event. Raises RecordError."""
        with _writing(self.directory, f"nothing was started; {ANOTHER_HOME}"):
            self.logs.mkdir(parents=True, exist_ok=True)
            write_atomically(self.directory / "job.sh", job.encode())
            write_atomically(self.directory / "run.toml", run_toml.encode())
            self.add_event(state="planned")

    @property
    def complete(self) -> bool:
        """Whether all of it was made."""
        return (self.directory / "run.toml").exists() and (self.directory / "events.jsonl").exists()

    def remove(self) -> None:
        """Take back a record that was just made."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def add_provenance(self, more: Mapping[str, Any]) -> None:
        """Write into run.toml on what the run ran; the loader ignores that table. Raises RecordError.

        A file that is damaged stays as it is.
        """
        import tomli_w

        with _writing(self.directory):
            try:
                spec = tomllib.loads((self.directory / "run.toml").read_text(encoding="utf-8"))
            except ValueError:
                return
            spec["provenance"] = {**spec.get("provenance", {}), **more}
            write_atomically(self.directory / "run.toml", tomli_w.dumps(spec).encode())

    def add_event(self, **event: Any) -> None:
        """Append one event, synced before this returns; what it announces is done only then."""
        line = (json.dumps({"time": round(time.time(), 3), **event}) + "\n").encode()
        with _writing(self.directory):
            descriptor = os.open(self.directory / "events.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a torn line before it is dropped by readers
                if os.write(descriptor, line) != len(line):
                    os.ftruncate(descriptor, size)
                    raise OSError(28, "No space left on device")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def spec(self) -> dict[str, Any]:
        """The run as a spec, unchecked but for its having a workload. Raises RecordError."""
        file = self.directory / "run.toml"
        spec: dict[str, Any] = {}
        with suppress(ValueError):
            spec = tomllib.loads((_read(file) or b"").decode())
        if not isinstance(spec.get("workload"), dict):
            raise RecordError(f"{file} is not the spec of a run any more")
        return spec

    def events(self) -> Iterator[dict[str, Any]]:
        """All events in order, without a torn last line."""
        for line in (_read(self.directory / "events.jsonl") or b"").splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event

    def state(self) -> dict[str, Any]:
        """What all events together say: the last of each key."""
        merged: dict[str, Any] = {"state": "planned"}
        for event in self.events():
            merged |= event
        return merged

    @property
    def ended(self) -> bool:
        """Whether the last state is final."""
        return self.state()["state"] in END_STATES

    def write_result(self, result: Mapping[str, Any], steps: Iterable[Step]) -> None:
        """The steps and the result, each whole or not at all. Raises RecordError."""
        with _writing(self.directory):
            write_atomically(self.directory / "steps.csv", steps_csv(steps).encode())
            write_atomically(self.directory / "result.json", (json.dumps(result, indent=2) + "\n").encode())

    def result(self) -> dict[str, Any] | None:
        """The result, or null while there is none. Raises RecordError where it is damaged or cannot be read."""
        data = _read(self.directory / "result.json")
        if data is None:
            return None
        result = None
        with suppress(ValueError):
            result = json.loads(data)
        if not isinstance(result, dict):
            raise RecordError(f"{self.directory / 'result.json'} is not the result of a run any more")
        return result

    def append_log(self, name: str, data: bytes) -> None:
        """Add new bytes to the local copy of a log. Raises RecordError; what did not fit is read again later."""
        with _writing(self.directory):
            self.logs.mkdir(exist_ok=True)
            with open(self.logs / name, "ab", buffering=0) as file:
                written = 0
                while written < len(data):
                    written += file.write(data[written:]) or 0

    def log_size(self, name: str) -> int:
        """How much of a log has been read."""
        with suppress(FileNotFoundError):
            return (self.logs / name).stat().st_size
        return 0

    def request_cancel(self) -> None:
        """Ask whoever drives this run to end it. Raises RecordError."""
        with _writing(self.directory):
            (self.directory / "cancel").touch()

    @property
    def cancel_requested(self) -> int:
        """When somebody last asked for the run's end, in nanoseconds since 1970; 0 where nobody did."""
        with suppress(FileNotFoundError):
            return (self.directory / "cancel").stat().st_mtime_ns
        return 0

    @property
    def locked(self) -> bool:
        """Whether this process drives the run."""
        return self._lock is not None

    def try_lock(self) -> bool:
        """Become the one that drives this run; false while another process does. The kernel frees the lock."""
        if self._lock is None:
            with _writing(self.directory):
                descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._lock = descriptor
        return True

    def unlock(self) -> None:
        """Let others drive this run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _read(file: Path) -> bytes | None:
    """What a file holds, or null where it is not there. Raises RecordError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def _writing(directory: Path, remedy: str = "") -> Iterator[None]:
    """Turns an OSError into the one line that says what to do about it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = remedy or f"nothing that was there is lost; mend that, then `llmb attach {directory.name}` goes on"
        raise RecordError(f"the record {directory} cannot be written: {reason}; {remedy}") from error


def steps_csv(steps: Iterable[Step]) -> str:
    """One line a step: what has a name of its own, then whatever else was printed."""
    rows = [(step, {name: getattr(step, name) for name in STEP_COLUMNS}) for step in steps]
    more = sorted({name for step, _ in rows for name in step.figures})
    text = io.StringIO()
    writer = csv.DictWriter(text, [*STEP_COLUMNS, *more], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | dict(step.figures) for step, row in rows)
    return text.getvalue()


def runs_folder() -> Path:
    """Where the records of all runs are."""
    return home_folder() / "runs"


def create_records(texts: Mapping[str, tuple[str, str]]) -> list[RunRecord]:
    """A record for each run id, of its spec and its job: for all or for none, whenever this process is killed.

    Raises RecordError.
    """
    records = [RunRecord(runs_folder() / run_id) for run_id in texts]
    if taken := next((record.run_id for record in records if record.complete), None):
        raise RecordError(f"a run {taken} is recorded already, by a rare chance; start it again")
    with _writing(runs_folder() / next(iter(texts)), f"nothing was started; {ANOTHER_HOME}"):
        intent = PendingSweep.write(home_folder() / "recording", texts)
    with intent:
        try:
            for record in records:
                record.create(*texts[record.run_id])
        except BaseException:  # Ctrl-C among them
            for record in records:
                record.remove()
            raise
        finally:
            intent.discard()
    return records


def _finish_recording() -> None:
    """Make what a process that was killed meanwhile meant to make."""
    for intent in PendingSweep.find_stale(home_folder() / "recording"):
        with intent, suppress(RecordError):  # one that cannot be made now is made later
            for run_id, texts in intent.texts.items():
                if not (record := RunRecord(runs_folder() / run_id)).complete:
                    record.create(*texts)
            intent.discard()


def all_records() -> list[RunRecord]:
    """Every record, in no order. Raises RecordError where the folder cannot be read."""
    folder = runs_folder()
    _finish_recording()
    try:
        return [RunRecord(each) for each in folder.iterdir() if (each / "run.toml").exists()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}; {ANOTHER_HOME}") from error


def find_record(wanted: str) -> RunRecord:
    """The record of a run id or of a unique prefix of one, which can be read. Raises RecordError."""
    record = _find(wanted)
    record.spec()
    record.state()
    return record


def _find(wanted: str) -> RunRecord:
    records = {record.run_id: record for record in all_records()}
    if wanted in records:
        return records[wanted]
    matching = sorted(run_id for run_id in records if run_id.startswith(wanted)) if wanted else []
    if len(matching) == 1:
        return records[matching[0]]
    if matching:
        raise RecordError(
            f"run {wanted!r} is not unique: {', '.join(matching[:5])}{' ...' if len(matching) > 5 else ''}"
        )
    raise RecordError(f"there is no run {wanted!r} in {runs_folder()}; `llmb runs` lists them")
