"""Runs that a session resumes, and errors of single runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmb.drive import attach
from llmb.drive.session import Session
from llmb.drive.target_errors import with_recovery_hint
from llmb.paths import runs_folder
from llmb.records.record import RunRecord
from llmb.state_machine.events import Ended, Note
from llmb.values.errors import RecordError, TargetError


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRecord:
    """Record a run that cannot be resumed."""
    monkeypatch.setenv("LLMB_HOME", str(tmp_path))
    record = RunRecord(runs_folder() / "k3x9f")
    record.create("workload = 3\n", "")
    return record


def notes(session: Session) -> list[str]:
    return [event.text for event in session if isinstance(event, Note)]


def test_without_names_all_runs_are_attached_and_of_an_empty_list_none(broken: RunRecord) -> None:
    for session in (attach.attach([]), attach.cancel([])):
        assert (session.run_ids, notes(session)) == ([], [])
    session = attach.attach()
    assert session.run_ids == []
    [note] = notes(session)
    assert note.startswith(f"skipping {broken.run_id}: ")


def test_a_bug_in_one_run_s_plugin_holds_up_no_other_where_it_was_not_named(
    broken: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "read_run_toml", lambda *_: 1 / 0)
    session = attach.attach()
    assert session.run_ids == []
    assert notes(session) == [f"skipping {broken.run_id}: ZeroDivisionError: division by zero"]


def test_a_record_of_which_one_cannot_tell_holds_up_no_other(broken: RunRecord) -> None:
    unreadable = broken.directory.with_name("unreadable")
    (unreadable / "events.jsonl").mkdir(parents=True)
    (unreadable / "run.toml").touch()
    session = attach.attach()
    assert session.run_ids == []
    assert sorted(note.partition(":")[0] for note in notes(session)) == ["skipping k3x9f", "skipping unreadable"]


@pytest.mark.parametrize("take", [attach.attach, attach.cancel])
def test_one_string_is_not_taken_for_a_list_of_runs(broken: RunRecord, take: object) -> None:
    with pytest.raises(TypeError, match=r"\['k3x9f'\]"):
        take(broken.run_id)  # type: ignore[operator]  # either of two


@pytest.mark.parametrize("take", [attach.attach, attach.cancel])
def test_all_runs_that_cannot_be_taken_are_told_at_once(broken: RunRecord, take: Any) -> None:
    with pytest.raises(RecordError) as raised:
        take(["x", broken.run_id, "y", "x"])
    told = [str(fault).removeprefix(str(broken.directory))[:20] for fault in raised.value.faults]
    assert told == ["there is no run 'x' ", "/run.toml is damaged", "there is no run 'y' "]


def test_the_error_of_a_target_names_the_first_runs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMB_HOME", str(tmp_path))
    records = [RunRecord(runs_folder() / f"run{number:02}") for number in range(13)]
    for record in records:
        record.create("workload = 3\n", "")
    for record in records[6:]:
        record.request_cancel()
    message = str(with_recovery_hint(TargetError("no route to eos"), records))
    assert "`llmb attach run00 run01 run02 run03 run04`" in message
    assert "`llmb cancel run00 run01 run02 run03 run04` (and 1 more); " in message
    assert "`llmb cancel run06 run07 run08 run09 run10` (and 2 more); " in message


@pytest.mark.parametrize("take", [attach.attach, attach.cancel])
def test_a_run_that_is_over_needs_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Any) -> None:
    monkeypatch.setenv("LLMB_HOME", str(tmp_path))
    record = RunRecord(runs_folder() / "k3x9f")
    record.create('[workload]\nframework = "uninstalled"\n', "")
    record.add_events([Ended(run_id="k3x9f", time=1.0, state="completed")])
    with take(["k3x9f"]) as session:
        assert [event for event in session if not isinstance(event, Note)] == []
        assert [(run.run_id, run.state) for run in session.results] == [("k3x9f", "completed")]
