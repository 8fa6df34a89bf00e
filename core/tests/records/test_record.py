"""The record: files are complete, torn lines are dropped, and a run is found by its prefix."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from llmb.paths import home_folder, runs_folder
from llmb.records.create_records import PendingSweep, SweepRecorder
from llmb.records.find_record_by_id import all_records, find_record
from llmb.records.record import RunRecord
from llmb.state_machine.events import AttemptStarted, Ended, Planned, Queued, Running, Submitting
from llmb.values.errors import RecordError
from llmb.values.frozen import FrozenMap
from llmb.values.steps import Step


@pytest.fixture
def home() -> Path:
    return home_folder()


@pytest.fixture
def record() -> RunRecord:
    return made("abcde-llama")


def made(run_id: str) -> RunRecord:
    record = RunRecord(runs_folder() / run_id)
    record.create("[workload]\n", "#!/bin/bash\n")
    return record


def test_a_new_record_is_planned_and_holds_what_was_asked(record: RunRecord) -> None:
    assert record.state().run_state == "planned"
    assert (record.directory / "run.toml").read_text() == "[workload]\n"
    assert (record.directory / "job.sh").read_text() == "#!/bin/bash\n"
    assert record.result() is None
    assert not record.ended


def test_the_last_event_of_each_key_counts(record: RunRecord) -> None:
    record.add_events([Queued(job_id="12"), Running(), AttemptStarted(attempt=1)])
    known = record.state()
    assert (known.stage, known.job_id, known.attempt) == ("running", "12", 1)


@pytest.mark.parametrize(
    "torn", ['{"time": 1, "state": "comple', "{", "\x00\x00", '{"time": 1, "state": "failed"}tail']
)
def test_a_torn_last_line_is_dropped_and_the_next_event_is_not_glued_to_it(record: RunRecord, torn: str) -> None:
    events = record.directory / "events.jsonl"
    events.write_text(events.read_text() + torn)
    assert record.state().run_state == "planned"
    record.add_events([Running()])
    assert record.state().run_state == "running"
    assert [type(each) for each in record.events()] == [Planned, Running]


def test_a_whole_event_without_its_end_of_line_counts(record: RunRecord) -> None:
    events = record.directory / "events.jsonl"
    events.write_text(events.read_text() + '{"state": "running"}')
    record.add_events([AttemptStarted(attempt=7)])
    assert record.state().run_state == "running"
    assert record.state().attempt == 7


def test_an_event_that_does_not_fit_leaves_no_trace(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (record.directory / "events.jsonl").read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    with pytest.raises(RecordError, match=r"No space left on device; .* `llmb attach abcde-llama`$"):
        record.add_events([Running()])
    assert (record.directory / "events.jsonl").read_bytes() == before


def test_a_result_that_does_not_fit_leaves_the_old_one(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    record.write_result({"state": "failed"}, [])

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RecordError, match="No space left"):
        record.write_result({"state": "completed"}, [])
    assert record.result() == {"state": "failed"}
    assert not list(record.directory.glob(".*"))


def test_steps_keep_every_figure(record: RunRecord) -> None:
    steps = [
        Step(step=1, time_s=0.5, loss=2.5),
        Step(step=2, time_s=0.25, other_values=FrozenMap({"lr": 0.1}), attempt=1),
    ]
    record.write_result({}, steps)
    assert (record.directory / "steps.csv").read_text().splitlines() == [
        "step,time_s,loss,tflops_per_gpu,tokens_per_s_per_gpu,mean_of,attempt,lr",
        "1,0.5,2.5,,,1,0,",
        "2,0.25,,,,1,1,0.1",
    ]


def test_the_size_of_a_copy_is_how_much_of_the_log_was_read(record: RunRecord) -> None:
    assert record.log_size("train.0.log") == 0
    record.append_log("train.0.log", b"one\n")
    record.append_log("train.0.log", b"two\n")
    assert record.log_size("train.0.log") == 8


def test_one_process_drives_a_run(record: RunRecord) -> None:
    other = RunRecord(record.directory)
    assert record.try_lock()
    assert record.try_lock()
    assert not other.try_lock()
    assert not other.locked
    record.unlock()
    assert other.try_lock()
    other.unlock()


def test_ctrl_c_while_unlocking_leaves_nothing_to_close(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    assert record.try_lock()

    def close_and_interrupt(descriptor: int) -> None:
        os.closerange(descriptor, descriptor + 1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.close", close_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            record.unlock()
    record.unlock()
    assert not record.locked


def test_a_run_is_found_by_its_id_or_a_unique_prefix() -> None:
    for run_id in ("abcde-one", "abxyz-two", "abcde-one-more"):
        made(run_id)
    assert find_record("abx").run_id == "abxyz-two"
    assert find_record("abcde-one").run_id == "abcde-one"
    with pytest.raises(RecordError, match=r"'abcde' is the beginning of 2 run ids\n  abcde-one\n  abcde-one-more$"):
        find_record("abcde")
    with pytest.raises(RecordError, match=r"there is no run 'zz' in .*; `llmb runs` lists them$"):
        find_record("zz")
    with pytest.raises(RecordError, match=r"did you mean 'abxyz-two'\?"):
        find_record("abxyy")
    with pytest.raises(RecordError, match="there is no run ''"):
        find_record("")


@pytest.mark.parametrize("shown", ["abcde-ll…bf16-8", "abcde…", "abcde-llama-bf…16-8"])
def test_a_run_is_found_by_an_id_that_a_table_shortened(shown: str) -> None:
    for run_id in ("abcde-llama-bf16-8", "abxyz-llama-bf16-8"):
        made(run_id)
    assert find_record(shown).run_id == "abcde-llama-bf16-8"
    with pytest.raises(RecordError, match=r"there is no run '…bf16-8'"):
        find_record("…bf16-8")
    with pytest.raises(RecordError, match=r"there is no run 'abcde-ll…fp8-8'"):
        find_record("abcde-ll…fp8-8")


def test_an_ambiguous_beginning_names_the_first_runs_only() -> None:
    for number in range(7):
        made(f"abcde-{number}")
    with pytest.raises(RecordError, match=r"is the beginning of 7 run ids\n  abcde-0\n(.*\n){4}  and 2 more$"):
        find_record("abcde")


def test_what_is_not_a_record_is_not_found(tmp_path: Path) -> None:
    (runs_folder() / "half-made").mkdir(parents=True)
    with pytest.raises(RecordError):
        find_record("half")


def test_a_result_that_is_damaged_is_told_and_never_guessed(record: RunRecord) -> None:
    (record.directory / "result.json").write_text("{")
    with pytest.raises(RecordError, match="is no longer the result of a run"):
        record.result()


def test_a_record_that_was_taken_back_is_gone(record: RunRecord) -> None:
    record.remove()
    assert not record.directory.exists()


def test_events_are_lines_of_json(record: RunRecord) -> None:
    record.add_events([Ended(state="failed", reason="two\nlines")])
    lines = (record.directory / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["planned", "failed"]


def test_a_sweep_is_recorded_whole_where_the_process_was_killed_meanwhile(home: Path) -> None:
    runs = {f"r{number}": ({"workload": {"gpus": number}}, f"job {number}") for number in range(3)}
    pending = PendingSweep.write(home / "recording", runs)
    RunRecord(runs_folder() / "r0").create("[workload]\ngpus = 0\n", "job 0")
    RunRecord(runs_folder() / "r0").add_events([Submitting()])
    (runs_folder() / "r1").mkdir()
    pending.close()  # the process is killed when the second record is incomplete
    records = {record.run_id: record for record in all_records()}
    assert {name: record.spec() for name, record in records.items()} == {name: spec for name, (spec, _) in runs.items()}
    assert [(records[name].directory / "job.sh").read_text() for name in runs] == ["job 0", "job 1", "job 2"]
    assert [records[name].state().run_state for name in runs] == ["submitting", "planned", "planned"]
    assert list((home / "recording").iterdir()) == []


def test_a_record_of_a_killed_process_that_is_unreadable_now_does_not_hide_the_other_runs(home: Path) -> None:
    RunRecord(runs_folder() / "r0").create("[workload]\n", "job")
    PendingSweep.write(home / "recording", {"r1": ({"workload": {}}, "job", {})}).close()
    (runs_folder() / "r1").symlink_to("r1")
    assert "r0" in [record.run_id for record in all_records()]
    (runs_folder() / "r1").unlink()
    assert {record.run_id for record in all_records()} == {"r0", "r1"}


def test_a_sweep_of_which_one_cannot_be_recorded_is_not_recorded(home: Path) -> None:
    runs_folder().mkdir(parents=True)
    (runs_folder() / "r2").touch()
    with pytest.raises(RecordError, match="nothing was started"):
        SweepRecorder({RunRecord(runs_folder() / name, {}): "job" for name in ("r0", "r1", "r2")})
    (runs_folder() / "r2").unlink()
    assert all_records() == []


def test_a_home_that_cannot_be_is_told_with_what_names_it(home: Path) -> None:
    home.touch()
    for use in (all_records, lambda: SweepRecorder({RunRecord(runs_folder() / "r1", {}): "job"})):
        with pytest.raises(RecordError, match=r"Not a directory; (nothing was started; )?set LLMB_HOME to use another"):
            use()


def test_what_another_process_is_recording_is_left_to_it(home: Path) -> None:
    pending = PendingSweep.write(home / "recording", {"r1": ({}, "job", {})})
    assert all_records() == []
    pending.close()
    assert [record.run_id for record in all_records()] == ["r1"]


def test_another_process_never_finds_the_file_of_a_living_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[RunRecord]] = []
    replace = os.replace

    def replace_and_list(source: Path, target: Path) -> None:
        replace(source, target)
        found.append(all_records())  # as another process does at this moment

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_and_list)
        pending = PendingSweep.write(home / "recording", {"r1": ({}, "job", {})})
    assert found == [[]]
    assert pending.file.exists()
    pending.close()


def test_a_later_record_that_fails_skips_its_run_and_is_created_by_the_next_process(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb.records.create_records.FIRST_RECORDS", 1)
    runs_folder().mkdir(parents=True)
    (runs_folder() / "r2").touch()
    recorder = SweepRecorder({RunRecord(runs_folder() / name, {"workload": {}}): "job" for name in ("r1", "r2", "r3")})
    assert not (runs_folder() / "r3").exists(), "threads that write it delay the first submission"
    recorder.finish()
    assert recorder.is_created("r1")
    with pytest.raises(RecordError, match=r"File exists; nothing is lost; .*`llmb attach r2`") as raised:
        recorder.is_created("r2")
    assert "nothing was started" not in str(raised.value)
    (runs_folder() / "r2").unlink()
    assert sorted(record.run_id for record in all_records()) == ["r1", "r2", "r3"]


def test_a_request_to_cancel_that_cannot_be_written_names_the_command_to_repeat(home: Path) -> None:
    record = RunRecord(runs_folder() / "r1")
    record.create("[workload]\n", "job")
    (record.directory / "cancel").symlink_to("missing/file")
    with pytest.raises(RecordError, match=r"; fix this, then repeat `llmb cancel r1`$"):
        record.request_cancel()


def test_a_write_ahead_file_that_cannot_be_removed_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = SweepRecorder({RunRecord(runs_folder() / "r1", {"workload": {}}): "job"})

    def fail(path: Path, **_more: Any) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail)
        with pytest.raises(RecordError, match=r"cannot remove .*recording/r1\.json: Read-only file system"):
            recorder.finish()
    recorder.finish()
    assert [record.run_id for record in all_records()] == ["r1"]


def test_files_that_cannot_be_read_are_named(record: RunRecord) -> None:
    record.logs.mkdir()
    for file in (record.directory / "cancel", record.logs / "train.log"):
        file.symlink_to(file.name)  # to itself
    for read in (lambda: record.cancel_requested_ns, lambda: record.log_size("train.log")):
        with pytest.raises(RecordError, match=r"(cancel|train\.log) cannot be read: Too many levels"):
            read()


def test_a_file_system_without_locks_is_an_error_of_one_line(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int, _operation: int) -> None:
        raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", fail)
        with pytest.raises(RecordError, match=r"lock: No locks available; .*LLMB_HOME"):
            record.try_lock()
    assert record.try_lock()
    record.unlock()


@pytest.mark.parametrize("damaged", [b"[workload", b"\xff\xfe"])
def test_a_spec_that_is_damaged_stays_as_it_is_when_more_is_known_of_its_run(record: RunRecord, damaged: bytes) -> None:
    (record.directory / "run.toml").write_bytes(damaged)
    record.add_provenance({"gpu": "H100"})
    assert (record.directory / "run.toml").read_bytes() == damaged


@pytest.mark.parametrize("damaged", ["provenance = 3", "model = []"])
def test_a_spec_with_a_value_for_a_table_is_damaged(record: RunRecord, damaged: str) -> None:
    file = record.directory / "run.toml"
    file.write_text(f"{damaged}\n[workload]\ngpus = 8\n")
    with pytest.raises(RecordError, match=r"run\.toml is damaged: it is no longer the spec of a run$"):
        RunRecord(record.directory).spec()


def test_a_spec_that_is_missing_is_not_created_when_more_is_known_of_its_run(record: RunRecord) -> None:
    (record.directory / "run.toml").unlink()
    with pytest.raises(RecordError, match=r"No such file or directory"):
        record.add_provenance({"gpu": "H100"})
    assert not record.complete


def test_a_result_that_cannot_be_read_is_a_fault_of_one_line(record: RunRecord) -> None:
    (record.directory / "result.json").mkdir()
    with pytest.raises(RecordError, match=r"result\.json cannot be read: Is a directory$"):
        record.result()


JUNK = b"\x00\xff junk\n"


@pytest.mark.parametrize("command", ["show", "logs", "attach", "cancel"])
@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("run.toml", JUNK, "is damaged: it is no longer the spec of a run"),
        ("run.toml", b"workload = 3\n", "is damaged: it is no longer the spec of a run"),
        ("run.toml", None, "cannot be read: Is a directory"),
        ("events.jsonl", None, "cannot be read: Is a directory"),
    ],
)
def test_a_run_whose_record_cannot_be_read_is_a_fault_of_one_line(
    record: RunRecord, run_llmb: Any, command: str, file: str, content: bytes | None, told: str
) -> None:
    (record.directory / "result.json").write_bytes(JUNK)
    (record.directory / file).unlink()
    if content is None:
        (record.directory / file).mkdir()
    else:
        (record.directory / file).write_bytes(content)
    done = run_llmb(command, record.run_id)
    assert (done.returncode, done.stderr) == (2, f"llmb: {record.directory / file} {told}\n")
    [listed] = run_llmb.json("runs")["runs"]
    assert (listed["state"], listed["reason"]) == ("lost", f"{record.directory / file} {told}")


def test_a_record_that_was_deleted_is_not_called_safe(record: RunRecord) -> None:
    record.remove()
    with pytest.raises(RecordError, match=r"was deleted; its job may continue"):
        record.add_events([Running()])
