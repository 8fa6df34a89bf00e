"""Secrets do not stay on a target if no job was submitted that needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llmb
from llmb.hosts.local_host import LocalHost

JOB = {"secrets": ["TOY_TOKEN"]}
TASK = {"task": "data", "task_on": "scheduler", "task_secrets": ["TOY_TOKEN"]}


class EnoughError(Exception):
    """Raised when all errors were raised."""


@pytest.fixture
def drive(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Drive a run whose submissions end with these errors, one after the other."""
    from llmb_toy.scheduler import Faulty

    monkeypatch.setenv("TOY_TOKEN", "very-secret")

    def drive(
        options: dict[str, Any],
        *errors: Exception,
        session: Any = None,
        sleep: Callable[[float], object] = lambda _pause_s: None,
    ) -> Any:
        left: Iterator[Exception] = iter(errors)

        def refuse(scripts: Any) -> None:
            if scripts:
                raise next(left, EnoughError())

        session = session or llmb.start(llmb.load(toy.spec(framework=options, target={"scheduler": "faulty"})))
        with monkeypatch.context() as refusing:
            refusing.setitem(Faulty.errors, "submit", refuse)
            with pytest.raises((llmb.LlmbError, EnoughError)):
                session.wait(sleep=sleep)
        return session

    return drive


def secrets(toy: Any) -> list[Path]:
    return list(toy.home.rglob(".secrets"))


REFUSED = llmb.TargetError("the controller cannot be reached")
PERHAPS = llmb.UnknownOutcomeError("the connection was lost")


@pytest.mark.parametrize("options", [JOB, TASK], ids=["job", "task"])
@pytest.mark.parametrize(
    ("error", "states"),
    [(REFUSED, []), (llmb.BusyError("locked"), ["completed"]), (llmb.SpecError("no jobs on Sundays"), ["completed"])],
    ids=["target", "lock", "spec"],
)
def test_they_are_removed_after_a_rejection(
    toy: Any, drive: Any, options: dict[str, Any], error: Exception, states: list[str]
) -> None:
    drive(options, error)
    assert secrets(toy) == []
    assert [result.state for result in llmb.attach().wait()] == states


@pytest.mark.parametrize("options", [JOB, TASK], ids=["job", "task"])
def test_a_later_attach_removes_those_that_a_lost_target_kept(
    toy: Any, drive: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = LocalHost.run

    def refuse(self: LocalHost, script: str, **more: Any) -> Any:
        if script.startswith("rm -f ") or "list_waiting" in script:
            raise llmb.TargetError("the login node rejects commands")
        return run(self, script, **more)

    with monkeypatch.context() as lost:
        lost.setattr(LocalHost, "run", refuse)
        session = drive(options, REFUSED)
    assert len(secrets(toy)) == 1
    assert [result.state for result in llmb.attach(session.run_ids).wait()] == ["failed"]
    assert secrets(toy) == []
    assert toy.journal() == []


def test_a_job_that_may_be_submitted_keeps_them_even_if_the_next_attempt_is_rejected(toy: Any, drive: Any) -> None:
    left: list[int] = []
    session = drive(JOB, PERHAPS, REFUSED, sleep=lambda _pause_s: left.append(len(secrets(toy))))
    assert left == [1, 1]
    drive(JOB, REFUSED, session=llmb.attach(session.run_ids))
    assert len(secrets(toy)) == 1
