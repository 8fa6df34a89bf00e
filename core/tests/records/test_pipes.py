"""Pipes in the place of files of a record: nothing waits for their other end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llmb import FrozenMap, list_runs
from llmb.files import is_locked
from llmb.hosts.local_host import LocalHost
from llmb.paths import home_folder, runs_folder
from llmb.records.create_records import PendingSweep
from llmb.records.last_progress import read_progress
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.state_machine.events import Running
from llmb.values.errors import RecordError

LIMIT_S = 30


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """Raise TimeoutError in a test that waits for a pipe."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def record() -> RunRecord:
    record = RunRecord(runs_folder() / "abcde-llama")
    record.create("[workload]\n", "#!/bin/bash\n")
    record.logs.mkdir()
    return record


def replace(path: Path) -> None:
    """Replace a file by a pipe."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("run.toml", RunRecord.spec),
        ("run.toml", lambda record: record.add_provenance({"host": "node1"})),
        ("result.json", RunRecord.result),
        ("events.jsonl", RunRecord.events),
        ("events.jsonl", lambda record: record.add_events([Running()])),
        ("logs/train.log", lambda record: record.append_log("train.log", b"step 1\n")),
        ("logs/train.log", RunRecord.sync_logs),
        ("lock", RunRecord.try_lock),
    ],
)
def test_a_pipe_in_a_record_is_an_error(record: RunRecord, name: str, use: Callable[[RunRecord], object]) -> None:
    replace(record.directory / name)
    with pytest.raises(RecordError, match="Not a regular file"):
        use(record)
    assert [run.run_id for run in list_runs()] == ["abcde-llama"]


def test_a_pipe_in_place_of_the_progress_is_no_progress(record: RunRecord) -> None:
    replace(record.directory / "progress.json")
    assert read_progress(record, 0) == (None, 0.0)


def test_a_pipe_in_place_of_the_copy_of_a_log_is_an_error(record: RunRecord) -> None:
    replace(record.logs / "0.log")
    script = SimpleNamespace(logs=FrozenMap({"train": ("/work/logs/0.log",)}))
    plan: Any = SimpleNamespace(job=SimpleNamespace(phases=(), sidecars=()), script=script)
    with pytest.raises(RecordError, match=r"cannot read the copies of logs in .*: Not a regular file"):
        LogCopies(plan, record, SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]


def test_a_log_of_a_job_that_is_a_pipe_has_no_new_bytes(record: RunRecord) -> None:
    replace(record.directory / "out.log")
    assert LocalHost().read({f"{record.directory}/out.log": 0}) == {}


def test_whether_a_lock_that_is_a_pipe_is_held_is_unknown(record: RunRecord) -> None:
    replace(record.directory / "lock")
    with pytest.raises(OSError, match="Not a regular file"):
        is_locked(record.directory / "lock")


def test_a_pipe_among_the_pending_sweeps_is_skipped() -> None:
    folder = home_folder() / "recording"
    folder.mkdir(parents=True)
    replace(folder / "abcde.json")
    assert list(PendingSweep.find_stale(folder)) == []
