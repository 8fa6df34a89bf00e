"""The index is a cache: it may be deleted or damaged at any time, and the records decide."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from llmb.paths import home_folder, runs_folder
from llmb.records.index.filters_and_sort_keys import has_repeats_of
from llmb.records.index.list_runs import _stamp, find_runs, list_runs, select_records
from llmb.records.last_progress import write_progress
from llmb.records.record import RunRecord
from llmb.records.result import RunResult, read_result
from llmb.state_machine.events import Ended, Progress, Running
from llmb.values.errors import SpecError

SPEC = '[workload]\nrecipe = "toy/tiny"\ngpu_type = "h100"\ndtype = "bf16"\ngpus = 8\n[provenance]\ncreated = "{0}"\n'

METRICS = {"flops_per_sequence": 1.0, "global_batch_size": 1, "seq_len": 1}


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
        "updated": found[0].updated,
        "progress": None,
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
    monkeypatch.setattr("llmb.records.index.runs_database.LOCK_TIMEOUT_S", 0.0)
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
    assert found["run2"].state == "lost"
    assert found["run2"].reason.endswith("events.jsonl is damaged: no line is an event of a run")


def test_no_runs_are_no_fault(index: Path) -> None:
    assert list_runs() == []


def test_only_new_and_shown_records_are_read_after_the_first_list(
    records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    for record in records:
        record.add_events([Ended(state="completed")])
    states()
    monkeypatch.setattr("llmb.records.index.list_runs.CLOCK_STEP_NS", 0)
    states()
    read: list[str] = []
    monkeypatch.setattr("llmb.records.index.list_runs._stamp", lambda name: read.append(name) or _stamp(name))
    monkeypatch.setattr("llmb.records.index.list_runs.folder_names", lambda: pytest.fail("the folder was not modified"))
    assert find_runs(limit=1).run_ids == ("run0",)
    assert read == ["run0"]


def test_a_record_in_an_unmodified_folder_is_found_once_it_is_complete(
    records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.records.index.list_runs.CLOCK_STEP_NS", 0)
    late = RunRecord(runs_folder() / "late")
    late.directory.mkdir()
    assert len(states()) == 3
    late.create(SPEC.format("2026-02-01"), "")
    assert len(states()) == 4


def test_progress_is_read_once_and_only_of_shown_runs(
    records: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    for record in records:
        record.add_events([Running(run_id=record.run_id, job_id="1")])
    list_runs()
    for record in records:
        write_progress(record, Progress(state="running", step=3, time=1.0), 0)
    read: list[str] = []

    def read_while_it_changes(record: RunRecord) -> RunResult:
        read.append(record.run_id)
        result = read_result(record)
        write_progress(record, Progress(state="running", step=10 ** len(read), time=2.0), 0)
        return result

    monkeypatch.setattr("llmb.records.index.list_runs.read_result", read_while_it_changes)
    [shown] = find_runs(limit=1).results()
    assert (shown.run_id, shown.progress and shown.progress.step) == ("run0", 3)
    assert read == ["run0"]
    list_runs()
    assert sorted(read[1:]) == ["run0", "run1", "run2"]


def test_an_ended_record_that_was_changed_is_read_again_if_it_is_shown(records: list[RunRecord]) -> None:
    records[0].add_events([Ended(state="completed")])
    states()
    records[0].write_result({"verdict": "fail", "reason": "slow"}, [])
    assert {each.run_id: each.verdict for each in list_runs()}["run0"] == "fail"
    records[1].add_events([Ended(state="completed")])
    states()
    (records[1].directory / "result.json").write_text('{"verdict": "pass"}')
    assert find_runs(["verdict=pass"]).run_ids == ()  # no shown run was changed
    assert find_runs(["verdict=pass"], rescan=True).run_ids == ("run1",)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["state=planned"], ["run2", "run1", "run0"]),
        (["state=planned,running", "gpus=1..8"], ["run2", "run1", "run0"]),
        (["recipe=toy/*"], ["run2", "run1", "run0"]),
        (["recipe=other*,toy/tiny"], ["run2", "run1", "run0"]),
        (["gpus=16"], []),
        (["since=2026-01-02"], ["run1", "run0"]),
        (["until=2026-01-02"], ["run2"]),
        (["since=1m"], []),
        (["image=*", "target="], ["run2", "run1", "run0"]),
        (["verdict=pass"], []),
        (["verdict!=pass", "state!=completed,failed"], ["run2", "run1", "run0"]),  # they have no verdict
        (["state!=planned"], []),
        (["gpus!=16..512", "recipe!=other/*"], ["run2", "run1", "run0"]),
        (["recipe=\udcff"], []),  # a byte that is not UTF-8
    ],
)
def test_filters_select_runs(records: list[RunRecord], filters: list[str], found: list[str]) -> None:
    assert list(find_runs(filters).run_ids) == found


@pytest.mark.parametrize(
    "text",
    [
        f"gpus={10**30}",
        f"gpus=1..{'9' * 5000}",
        "since=999999d",
        "until=0001-01-01T00:00+14:00",
        "recipe=" + "a," * 1000,
        "recipe=" + "*a" * 30_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_filter_that_no_index_can_answer_is_an_error(records: list[RunRecord], text: str) -> None:
    with pytest.raises(SpecError, match=r"^(invalid (gpus|since|until)|the filter (gpus|recipe) is too long)"):
        find_runs([text])


@pytest.mark.usefixtures("records")
def test_a_copy_of_the_home_has_the_paths_of_its_own_records(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunRecord(runs_folder() / "run0").add_events([Ended(run_id="run0", state="completed")])
    list_runs()
    assert index.exists()
    shutil.copytree(home_folder(), tmp_path / "copy")  # with the times of all files
    monkeypatch.setenv("LLMB_HOME", str(tmp_path / "copy"))
    for each in list_runs():
        assert each.directory == str(tmp_path / "copy/runs" / each.run_id)


def test_runs_are_sorted_with_missing_values_last(records: list[RunRecord]) -> None:
    for record, step_time_s in zip(records, (2.0, 1.0), strict=False):
        record.write_result({"metrics": METRICS | {"step_time_s": step_time_s}}, [])
        record.add_events([Ended(state="completed")])
    assert find_runs(sort="step_time").run_ids == ("run1", "run0", "run2")
    assert find_runs(sort="step_time", reverse=True).run_ids == ("run0", "run1", "run2")
    assert find_runs(reverse=True, limit=2).run_ids == ("run0", "run1")
    found = find_runs(limit=2)
    assert (found.total, found.run_ids) == (3, ("run1", "run0"))
    assert find_runs(limit=10**30).run_ids == ("run2", "run1", "run0")
    with pytest.raises(SpecError, match=r"unknown sort key 'step'; expected created, .* mean 'step_time'"):
        find_runs(sort="step")


def test_the_repeats_of_any_number_of_runs_are_found(records: list[RunRecord]) -> None:
    first_repeats = [f"run{number}" for number in range(300_000)]  # SQLite accepts 250,000 variables at most
    assert select_records([has_repeats_of(first_repeats)]).results() == []
