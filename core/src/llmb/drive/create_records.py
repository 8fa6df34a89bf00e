"""Creating the records of a sweep: the first ones before anything is submitted, the others meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from llmb.drive.pending_sweep import PendingSweep
from llmb.drive.record import OTHER_HOME, RunRecord, runs_folder
from llmb.paths import home_folder
from llmb.values.errors import RecordError

FIRST_RECORDS = 64
"""Records that are created before the first job is submitted. A sweep of this size is recorded completely or not."""

WRITERS = 16
"""Threads that write records. They mostly wait for the disk."""


class SweepRecorder:
    """Creates a record for each run of a sweep, from the tables of its spec and its job.

    The write-ahead file is synced first: if this process is killed, the next one creates what is missing. Raise
    RecordError if one of the first records cannot be created; then none exists.
    """

    def __init__(self, runs: Mapping[str, tuple[dict[str, Any], str]]) -> None:
        import tomli_w  # not needed to read records

        self.records = {run_id: RunRecord(runs_folder() / run_id, spec) for run_id, (spec, _) in runs.items()}
        texts = {run_id: (tomli_w.dumps(spec), job) for run_id, (spec, job) in runs.items()}
        if taken := next((record.run_id for record in self.records.values() if record.complete), None):
            raise RecordError(f"there is already a run {taken}; start the workload again")
        self._pending = _write_pending(texts)
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="llmb-record")
        names = list(texts)
        self._futures: dict[str, Future[None]] = {}
        self._finished = False
        try:
            self._start(names[:FIRST_RECORDS])
            for future in self._futures.values():
                future.result()
        except BaseException:  # Ctrl-C too
            self._take_back()
            raise
        self._start(names[FIRST_RECORDS:])

    def _start(self, run_ids: list[str]) -> None:
        for run_id in run_ids:
            text = self._pending.texts[run_id]
            self._futures[run_id] = self._writers.submit(self.records[run_id].create, *text)

    def _take_back(self) -> None:
        self._writers.shutdown(cancel_futures=True)
        for record in self.records.values():
            record.remove()
        self._pending.discard()
        self._pending.close()

    def is_created(self, run_id: str) -> bool:
        """Check whether the run's record exists. Raise RecordError if it could not be created."""
        if not self._futures[run_id].done():
            return False
        self._futures[run_id].result()
        return True

    def finish(self) -> None:
        """Wait until all records are created. Records that failed are left to the next process."""
        if self._finished:
            return
        wait(self._futures.values())
        self._finished = True
        self._writers.shutdown()
        try:
            if all(future.exception() is None for future in self._futures.values()):
                self._pending.discard()
        finally:
            self._pending.close()


def _write_pending(texts: Mapping[str, tuple[str, str]]) -> PendingSweep:
    try:
        return PendingSweep.write(home_folder() / "recording", texts)
    except OSError as error:
        directory = runs_folder() / next(iter(texts))
        reason = f"{error.strerror or error}; nothing was started; {OTHER_HOME}"
        raise RecordError(f"cannot write the record {directory}: {reason}") from error


def complete_stale_sweeps() -> None:
    """Create the records that processes which were killed meant to create."""
    for pending in PendingSweep.find_stale(home_folder() / "recording"):
        try:
            with suppress(RecordError):  # a later call tries again
                for run_id, texts in pending.texts.items():
                    if not (record := RunRecord(runs_folder() / run_id)).complete:
                        record.create(*texts)
                pending.discard()
        finally:
            pending.close()
