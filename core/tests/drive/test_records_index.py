"""The index is a cache: it may be deleted or damaged at any time, and the records decide."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from llmb.drive.events import Ended, Running
from llmb.drive.record import RunRecord, runs_folder
from llmb.drive.records_index import list_runs
from llmb.paths import home_folder

SPEC = '[workload]\nrecipe = "toy/tiny"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 8\n[provenance]\ncreated = "{0}"\n'


@pytest.fixture
def records() -> list[RunRecord]:
    made = [RunRecord(runs_folder() / f"run{number}") for number in range(3)]
    for number, record in enumerate(made):
        record.create(SPEC.format(f"2026-01-0{3 - number}"), "")
    return made


@pytest.fixture
def index() -> Path:
    return home_folder() / "index.sqlite"


def states() -> dict[str, str]:
    return {each.run_id: each.state for each in list_runs()}


def test_runs_are_listed_oldest_first_with_what_they_run(records: list[RunRecord]) -> None:
    found = list_runs()
    assert [each.run_id for each in found] == ["run2", "run1", "run0"]
    assert found[0].as_dict() == {
        "run_id": "run2",
        "state": "planned",
        "recipe": "toy/tiny",
        "gpu_type": "h100",
        "dtype": "bf16",
        "gpus": 8,
        "variant": None,
        "job_id": None,
        "directory": str(records[2].directory),
        "metrics": None,
        "verdict": None,
        "reason": "",
        "failure": None,
        "notes": [],
        "refused": False,
        "created": "2026-01-01",
        "sweep": {},
        "repeat": 1,
        "repeats": 1,
        "steps": None,
        "steps_done": None,
        "interval": None,
        "window": None,
        "steady_state": None,
        "tolerance": None,
        "first_repeat": None,
        "window_complete": None,
        "attempts": [],
        "goodput": None,
        "wall_time": None,
        "telemetry": None,
        "rank_times": None,
        "imported": False,
    }


def test_the_index_never_says_what_the_record_no_longer_says(records: list[RunRecord], index: Path) -> None:
    assert set(states().values()) == {"planned"}
    assert index.exists()
    records[0].add_events([Running(job_id="5")])
    assert states() == {"run0": "running", "run1": "planned", "run2": "planned"}
    records[0].write_result({"verdict": "pass", "reason": "good"}, [])
    records[0].add_events([Ended(state="completed")])
    run0 = next(each for each in list_runs() if each.run_id == "run0")
    assert (run0.state, run0.verdict, run0.reason, run0.job_id) == ("completed", "pass", "good", "5")
    shutil.rmtree(records[1].directory)
    assert set(states()) == {"run0", "run2"}


@pytest.mark.parametrize(
    "harm", ["deleted", "garbage", "empty", "cut", "another table", "other columns", "a directory", "read-only"]
)
def test_the_index_may_be_harmed_at_any_time(records: list[RunRecord], index: Path, harm: str) -> None:
    before = list_runs()
    if harm == "cut":
        index.write_bytes(index.read_bytes()[:5000])
    elif harm == "read-only":
        index.chmod(0o400)
    else:
        index.unlink()
    if harm == "garbage":
        index.write_bytes(b"no database " * 1000)
    elif harm == "empty":
        index.touch()
    elif harm in ("another table", "other columns"):
        with sqlite3.connect(index) as database:
            columns = "something text" if harm == "another table" else "run_id text, stamp text, result text, more text"
            database.execute(f"create table runs ({columns})")
        database.close()
    elif harm == "a directory":
        index.mkdir()
    assert list_runs() == before
    records[0].add_events([Running()])
    assert states()["run0"] == "running"
    assert states()["run0"] == "running"


def test_an_index_that_another_process_writes_is_left_to_it(
    records: list[RunRecord], index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.drive.records_index.LOCK_TIMEOUT_S", 0.0)
    before, file = list_runs(), index.stat().st_ino
    with closing(sqlite3.connect(index)) as writer:
        writer.execute("begin exclusive")
        assert list_runs() == before
    assert index.stat().st_ino == file


def test_a_damaged_record_hides_no_other(records: list[RunRecord]) -> None:
    (records[0].directory / "result.json").write_text("{")
    (records[1].directory / "run.toml").write_bytes(b"\xff\xfe")
    (records[2].directory / "events.jsonl").write_bytes(b"\xff\n[1]\n")
    found = {each.run_id: each for each in list_runs()}
    assert "is damaged: it is no longer the result of a run" in found["run0"].reason
    assert found["run1"].recipe is None
    assert found["run1"].state == "lost"
    assert found["run1"].reason.endswith("run.toml is damaged: it is no longer the spec of a run")
    assert found["run2"].state == "planned"


def test_no_runs_are_no_fault(index: Path) -> None:
    assert list_runs() == []
