"""A shared task, when runs that wait for it are cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb

CONTINUES = " for {}; "
CANCELLED = "too: no other run waits for it"


class EnoughError(Exception):
    """Raised by a test that has seen enough."""


def leave_waiting(toy: Any, name: str, on: str = "host", **target: Any) -> str:
    """Return the id of a run whose shared task has begun, and that no process drives any more."""
    options = {"task": "data", "task_on": on, "task_gate": str(toy.task_gate)}
    session = llmb.start(llmb.load(toy.spec(name, framework=options, target=target)))

    def wait(_pause_s: float) -> None:
        toy.wait_for_journal("task-begin")
        raise EnoughError

    with pytest.raises(EnoughError):
        session.wait(sleep=wait)
    return session.run_ids[0]


def cancel(*run_ids: str) -> list[str]:
    """Cancel runs, and return the notes for the user."""
    session = llmb.cancel(run_ids)
    notes = [event.text for event in session if isinstance(event, llmb.Note)]
    assert {result.state for result in session.results} == {"cancelled"}
    return notes


def ended(toy: Any) -> list[str]:
    """Return how the tasks' jobs ended."""
    files: list[Path] = [*toy.home.glob("work/tasks/*/ended"), *toy.home.glob("work/cache/jobs/*/ended")]
    return [file.read_text().split("\t")[1] for file in files]


@pytest.mark.slow
@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_its_job_ends_with_the_last_run_that_waits_for_it(toy: Any, on: str) -> None:
    run_id, other = leave_waiting(toy, "first", on), leave_waiting(toy, "second", on)
    [note] = cancel(run_id)
    assert note.startswith("toy data (job ")
    assert CONTINUES.format(other) in note
    [note] = cancel(other)
    assert CANCELLED in note
    assert toy.wait(lambda: ended(toy)) == ["cancelled"]


@pytest.mark.slow
@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_it_continues_for_a_run_of_another_home_that_waits_for_it(
    toy: Any, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = str(toy.home / "work")
    run_id = leave_waiting(toy, "first", on, workdir=work)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("LLMB_HOME", str(toy.folder / "other home"))
        other = leave_waiting(toy, "second", on, workdir=work)
    [note] = cancel(run_id)
    assert CONTINUES.format(other) in note
    monkeypatch.setenv("LLMB_HOME", str(toy.folder / "other home"))
    [note] = cancel(other)
    assert CANCELLED in note


def test_a_run_that_waits_for_its_twin_in_another_work_directory_does_not_keep_it(toy: Any) -> None:
    leave_waiting(toy, "first", workdir=f"{toy.home}/elsewhere")
    [note] = cancel(leave_waiting(toy, "second"))
    assert CANCELLED in note


def test_a_new_run_has_it_made_again_while_it_is_being_cancelled(toy: Any) -> None:
    cancel(leave_waiting(toy, "first"))
    assert toy.run(framework={"task": "data"})["state"] == "completed"
    assert list(toy.home.rglob("waiting/*")) == []


def test_runs_that_are_cancelled_together_do_not_wait_for_it(toy: Any) -> None:
    [note] = cancel(leave_waiting(toy, "first"), leave_waiting(toy, "second"))
    assert CANCELLED in note


def test_a_run_of_the_same_session_has_it_still(toy: Any) -> None:
    run_id, other = leave_waiting(toy, "first"), leave_waiting(toy, "second")
    llmb.cancel([run_id]).close()
    session = llmb.attach([run_id, other])
    session.wait(sleep=lambda _pause_s: toy.task_gate.touch())
    assert [result.state for result in session.results] == ["cancelled", "completed"]
    assert len(toy.journal("task-begin")) == 1


def test_a_target_that_does_not_respond_delays_no_cancel(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb_toy.scheduler import Faulty

    def refuse(_handles: Any) -> None:
        raise llmb.TargetError("no route to host")

    run_id = leave_waiting(toy, "first", "scheduler", scheduler="faulty")
    monkeypatch.setitem(Faulty.errors, "poll", refuse)
    [note] = cancel(run_id)
    assert note.startswith("toy data may ")
    assert note.endswith(" on this machine: no route to host")
