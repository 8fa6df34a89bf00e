"""Secrets do not stay on a target if no job was submitted that needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import llmb

JOB = {"secrets": ["TOY_TOKEN"]}
TASK = {"task": "data", "task_on": "scheduler", "task_secrets": ["TOY_TOKEN"]}


class EnoughError(Exception):
    """Raised when all errors were raised."""


@pytest.fixture
def drive(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Drive a run whose submissions end with these errors, one after the other."""
    from llmb_toy.scheduler import Faulty

    monkeypatch.setenv("TOY_TOKEN", "very-secret")

    def drive(options: dict[str, Any], *errors: Exception, session: Any = None) -> Any:
        left: Iterator[Exception] = iter(errors)

        def refuse(scripts: Any) -> None:
            if scripts:
                raise next(left, EnoughError())

        session = session or llmb.start(llmb.load(toy.spec(framework=options, target={"scheduler": "faulty"})))
        with monkeypatch.context() as refusing:
            refusing.setitem(Faulty.errors, "submit", refuse)
            with pytest.raises((llmb.LlmbError, EnoughError)):
                session.wait(sleep=lambda _pause_s: None)
        return session

    return drive


def secrets(toy: Any) -> list[Path]:
    return list(toy.home.rglob(".secrets"))


REFUSED = llmb.TargetError("the controller cannot be reached")
PERHAPS = llmb.UnknownOutcomeError("the connection was lost")


@pytest.mark.parametrize("options", [JOB, TASK], ids=["job", "task"])
@pytest.mark.parametrize("error", [REFUSED, llmb.SpecError("no jobs on Sundays")], ids=["target", "spec"])
def test_they_are_removed_after_a_rejection_and_the_run_continues_later(
    toy: Any, drive: Any, options: dict[str, Any], error: Exception
) -> None:
    session = drive(options, error)
    assert secrets(toy) == []
    session.wait()
    assert [result.state for result in session.results] == ["completed"]


def test_a_job_that_may_be_submitted_keeps_them_even_if_the_next_attempt_is_rejected(toy: Any, drive: Any) -> None:
    session = drive(JOB, PERHAPS, REFUSED)
    assert len(secrets(toy)) == 1
    drive(JOB, REFUSED, session=llmb.attach(session.run_ids))
    assert len(secrets(toy)) == 1
