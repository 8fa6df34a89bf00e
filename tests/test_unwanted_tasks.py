"""What becomes of a shared task when runs that wait for it are cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import llmb


class EnoughError(Exception):
    """All that was to be seen was seen."""


class Heard:
    """Keeps what people are told."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def progress(self, progress: llmb.Progress) -> None: ...

    def message(self, text: str) -> None:
        self.messages.append(text)


def leave_waiting(toy: Any, name: str, on: str = "host", **target: Any) -> str:
    """The id of a run whose shared task has begun, and that no process drives any more."""
    options = {"task": "data", "task_on": on, "task_gate": str(toy.task_gate)}
    session = llmb.start(llmb.load(toy.spec(name, framework=options, target=target)))

    def wait(_pause_s: float) -> None:
        toy.wait_for_journal("task-begin")
        raise EnoughError

    with pytest.raises(EnoughError):
        session.drive(wait=wait)
    return session.run_ids[0]


def cancel(*run_ids: str) -> list[str]:
    heard = Heard()
    session = llmb.cancel(run_ids, observer=heard)
    session.drive()
    assert {result.state for result in session.results} == {"cancelled"}
    return heard.messages


def ended(toy: Any) -> list[str]:
    """How the tasks' jobs ended."""
    files: list[Path] = [*toy.home.glob("work/tasks/*/ended"), *toy.home.glob("work/cache/jobs/*/ended")]
    return [file.read_text().split("\t")[1] for file in files]


@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_its_job_ends_with_the_last_run_that_waits_for_it(toy: Any, on: str) -> None:
    run_id, other = leave_waiting(toy, "first", on), leave_waiting(toy, "second", on)
    [told] = cancel(run_id)
    assert told.startswith("toy data (job ")
    assert told.endswith(f"goes on for {other}; it ends where `llmb cancel` ends these too")
    [told] = cancel(other)
    assert told.endswith("is ended too: no other run waits for it")
    assert toy.wait(lambda: ended(toy)) == ["cancelled"]


@pytest.mark.parametrize("on", ["host", "scheduler"])
def test_it_goes_on_for_a_run_of_another_home_that_waits_for_it(
    toy: Any, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = str(toy.home / "work")
    run_id = leave_waiting(toy, "first", on, workdir=work)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("LLMB_HOME", str(toy.folder / "other home"))
        other = leave_waiting(toy, "second", on, workdir=work)
    [told] = cancel(run_id)
    assert told.endswith(f"goes on for {other}; it ends where `llmb cancel` ends these too")
    monkeypatch.setenv("LLMB_HOME", str(toy.folder / "other home"))
    [told] = cancel(other)
    assert told.endswith("is ended too: no other run waits for it")


def test_a_run_that_waits_for_its_twin_in_another_work_directory_does_not_keep_it(toy: Any) -> None:
    leave_waiting(toy, "first", workdir=f"{toy.home}/elsewhere")
    [told] = cancel(leave_waiting(toy, "second"))
    assert told.endswith("is ended too: no other run waits for it")


def test_whoever_wants_it_while_it_is_being_ended_has_it_made_anew(toy: Any) -> None:
    cancel(leave_waiting(toy, "first"))
    assert toy.run(framework={"task": "data"})["state"] == "completed"
    assert list(toy.home.rglob("waiting/*")) == []


def test_runs_that_are_cancelled_at_once_want_it_no_more(toy: Any) -> None:
    [told] = cancel(leave_waiting(toy, "first"), leave_waiting(toy, "second"))
    assert told.endswith("is ended too: no other run waits for it")


def test_a_run_of_the_same_session_has_it_still(toy: Any) -> None:
    from llmb.drive.record import find_record

    run_id, other = leave_waiting(toy, "first"), leave_waiting(toy, "second")
    find_record(run_id).request_cancel()
    session = llmb.attach([run_id, other])
    session.drive(wait=lambda _pause_s: toy.task_gate.touch())
    assert [result.state for result in session.results] == ["cancelled", "completed"]
    assert len(toy.journal("task-begin")) == 1


def test_a_site_that_cannot_be_asked_holds_up_no_cancelling(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmb.drive.site import Site

    def alive(_site: Site, _keys: Any) -> Any:
        raise llmb.TargetError("no route to host")

    run_id = leave_waiting(toy, "first")
    monkeypatch.setattr(Site, "alive", alive)
    assert cancel(run_id) == ["toy data may go on on this machine: no route to host"]
