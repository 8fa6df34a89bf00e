"""Creating the records of a sweep: the first ones before anything is submitted, the others meanwhile.

After a kill, another process creates the records that are missing, from a write-ahead file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from llmb.files import lock_file
from llmb.paths import home_folder, runs_folder
from llmb.records.record import RunRecord
from llmb.records.record_files import OTHER_HOME
from llmb.values.errors import RecordError

FIRST_RECORDS = 64
"""Records that are created before the first job is submitted. A sweep of this size is recorded completely or not."""

MORE_RECORDS = 300
"""Further records whose creation begins during each submission: more than a batch, but so few that their threads have
ended when the files of the next jobs are sent."""

WRITERS = 16
"""Threads that write records. They mostly wait for the disk."""

NOTHING_STARTED = f"nothing was started; {OTHER_HOME}"

PendingRun = tuple[Mapping[str, Any], str, Mapping[str, str]]
"""What a record needs: the tables of run.toml, the text of job.sh, and the texts of further files by path."""


def records_problem() -> str | None:
    """Return why runs cannot be recorded in the home folder, or None."""
    folder = home_folder()
    nearest = next(each for each in (folder, *folder.parents) if os.path.exists(each))
    if not nearest.is_dir():
        return f"{nearest} is not a directory"
    return None if os.access(nearest, os.W_OK) else f"cannot write {folder}"


def check_home_folder() -> None:
    """Raise RecordError if runs cannot be recorded."""
    if problem := records_problem():
        raise RecordError(f"{problem}; {NOTHING_STARTED}")


class SweepRecorder:
    """Creates the records of a sweep. ``jobs`` has the record of each run, which knows its spec, with its job script.

    A write-ahead file is synced first: if this process is killed, the next one creates what is missing. Raise
    RecordError if one of the first records cannot be created; then none exists.
    """

    def __init__(self, jobs: Mapping[RunRecord, str]) -> None:
        if taken := next((record.run_id for record in jobs if record.complete), None):
            raise RecordError(f"there is already a run {taken}; start the workload again")
        pending = {record.run_id: (record.spec(), job, dict(record.files)) for record, job in jobs.items()}
        self._pending = _write_pending(pending)
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="llmb-record")
        self._futures: dict[str, Future[None]] = {}
        self._finished = False
        records = list(jobs)
        self._later = records[FIRST_RECORDS:]
        try:
            self._begin_to_create(records[:FIRST_RECORDS], NOTHING_STARTED)
            for future in self._futures.values():
                future.result()
        except BaseException:  # Ctrl-C too
            self._take_back(records)
            raise

    def create_more(self, most: int | None = None) -> None:
        """Begin to create up to ``most`` of the other records, or all. This delays what llmb does meanwhile."""
        count = len(self._later) if most is None else most
        now, self._later = self._later[:count], self._later[count:]
        self._begin_to_create(now)

    def _begin_to_create(self, records: list[RunRecord], remedy: str = "") -> None:
        for record in records:
            spec, job, _ = self._pending.runs[record.run_id]
            self._futures[record.run_id] = self._writers.submit(_create, record, spec, job, remedy)

    def _take_back(self, records: list[RunRecord]) -> None:
        self._writers.shutdown(cancel_futures=True)
        for record in records:
            record.remove()
        with suppress(RecordError):  # the user sees the first error
            self._pending.discard()
        self._pending.close()

    def is_created(self, run_id: str) -> bool:
        """Check whether the run's record exists. Raise RecordError if it could not be created."""
        future = self._futures.get(run_id)
        if future is None or not future.done():
            return False
        future.result()
        return True

    def finish(self, *, wait_for_all: bool = True) -> None:
        """Remove the write-ahead file once all records are created. Raise RecordError.

        Wait for them, unless ``wait_for_all`` is False. Records that failed are left to the next process.
        """
        are_done = not self._later and all(future.done() for future in self._futures.values())
        if self._finished or not (wait_for_all or are_done):
            return
        self.create_more()
        wait(self._futures.values())
        self._finished = True
        self._writers.shutdown()
        try:
            if all(future.exception() is None for future in self._futures.values()):
                self._pending.discard()
        finally:
            self._pending.close()


def _create(record: RunRecord, spec: Mapping[str, Any], job: str, remedy: str = "") -> None:
    import tomli_w  # not needed to read records

    record.create(tomli_w.dumps(spec), job, remedy)


def _write_pending(runs: Mapping[str, PendingRun]) -> PendingSweep:
    try:
        return PendingSweep.write(home_folder() / "recording", runs)
    except OSError as error:
        reason = f"{error.strerror or error}; {NOTHING_STARTED}"
        raise RecordError(f"cannot write the record {runs_folder() / next(iter(runs))}: {reason}") from error


@attrs.frozen
class PendingSweep:
    """The write-ahead file of a sweep with its runs, by id. It is locked while a living process creates the records."""

    file: Path
    descriptor: int
    runs: Mapping[str, PendingRun]

    @classmethod
    def write(cls, folder: Path, runs: Mapping[str, PendingRun]) -> PendingSweep:
        """Write, sync and lock the file. From here on this process or another creates the records. Raise OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{next(iter(runs))}.json"
        partial = folder / f".{file.name}.{os.getpid()}.partial"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        descriptor = lock_file(partial, flags)  # before the file has its name, by which other processes find it
        assert descriptor is not None
        try:
            with open(descriptor, "wb", closefd=False) as opened:
                opened.write(json.dumps(runs).encode())
            os.fsync(descriptor)
            os.replace(partial, file)
        except BaseException:  # Ctrl-C too
            partial.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(file, descriptor, runs)

    @classmethod
    def find_stale(cls, folder: Path) -> Iterator[PendingSweep]:
        """Yield the sweeps of processes that are gone, each locked."""
        try:
            files = sorted(folder.glob("*.json"))
        except OSError:  # the folder above cannot be read, which is reported when its runs are listed
            return
        for file in files:
            with suppress(OSError, ValueError):  # another process has just removed the file
                if (descriptor := lock_file(file, os.O_RDONLY)) is not None:
                    yield cls._read(file, descriptor)

    @classmethod
    def _read(cls, file: Path, descriptor: int) -> PendingSweep:
        try:
            runs = json.loads(file.read_bytes())  # fails if the process that held the lock removed the file
            return cls(
                file,
                descriptor,
                {run_id: (dict(spec), str(job), dict(*files)) for run_id, (spec, job, *files) in runs.items()},
            )
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            os.close(descriptor)
            raise ValueError(f"{file} does not contain the records of a sweep") from error

    def discard(self) -> None:
        """Delete the file: all records are created, or were taken back. Raise RecordError."""
        try:
            self.file.unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(f"cannot remove {self.file}: {error.strerror or error}; remove it") from error

    def close(self) -> None:
        """Free the lock."""
        os.close(self.descriptor)


def complete_stale_sweeps() -> None:
    """Create the missing records of sweeps whose process was killed."""
    for pending in PendingSweep.find_stale(home_folder() / "recording"):
        try:
            with suppress(RecordError, OSError):  # a later call tries again
                for run_id, (spec, job, files) in pending.runs.items():
                    if not (record := RunRecord(runs_folder() / run_id, files=files)).complete:
                        _create(record, spec, job)
                pending.discard()
        finally:
            pending.close()
