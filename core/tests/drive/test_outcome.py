"""The truth table, row by row."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from llmb.analysis.run_state import Evidence, decide
from llmb.values.job_status import END_STATES, Cause


def evidence(cause: str, *, steps: int = 5, **more: Any) -> Any:
    usual: dict[str, Any] = {"exit_code": None, "reason": "", "nan": False}
    return Evidence(cause=cause, steps_done=steps, steps_asked=5, **(usual | more))  # type: ignore[arg-type]  # a word


@pytest.mark.parametrize(
    ("cause", "steps", "nan", "state"),
    [
        ("cancelled", 5, False, "cancelled"),
        ("cancelled", 2, False, "cancelled"),
        ("cancelled", 5, True, "cancelled"),
        ("completed", 5, False, "completed"),
        ("completed", 6, False, "completed"),
        ("completed", 4, False, "failed"),
        ("completed", 0, False, "failed"),
        ("completed", 5, True, "failed"),
        ("timeout", 5, False, "completed"),
        ("timeout", 4, False, "timeout"),
        ("timeout", 5, True, "failed"),
        ("lost", 5, False, "lost"),
        ("lost", 0, False, "lost"),
        ("lost", 5, True, "failed"),
        *((cause, steps, False, "failed") for cause in ("failed", "out of memory", "preempted") for steps in (5, 2)),
        *((cause, 5, False, "failed") for cause in ("node failure", "launch failure", "dependency", "deadline")),
    ],
)
def test_the_state_that_a_run_truly_ended_in(cause: str, steps: int, nan: bool, state: str) -> None:
    assert decide(evidence(cause, steps=steps, nan=nan, exit_code=0)).state == state


@pytest.mark.parametrize("cause", [cause for cause in get_args(Cause) if cause])
@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("nan", [False, True])
def test_every_end_is_an_end_state_and_says_why_unless_all_is_well(cause: str, steps: int, nan: bool) -> None:
    outcome = decide(evidence(cause, steps=steps, nan=nan))
    assert outcome.state in END_STATES
    assert outcome.reason or (outcome.state == "completed" and cause == "completed")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (evidence("failed", steps=2, exit_code=3), "exit code 3 (after 2 of 5 steps)"),
        (evidence("failed", reason="rank 1: exit code 3"), "rank 1: exit code 3 (after 5 of 5 steps)"),
        (evidence("out of memory", reason="rank 0"), "out of memory: rank 0 (after 5 of 5 steps)"),
        (evidence("node failure", steps=1), "node failure (after 1 of 5 steps)"),
        (evidence("failed", steps=0), "it failed (after 0 of 5 steps)"),
        (evidence("lost", steps=1), "its end is not known (1 of 5 steps done)"),
        (evidence("cancelled", steps=1), "cancelled after 1 of 5 steps"),
        (evidence("timeout", steps=1), "the time limit came after 1 of 5 steps"),
        (evidence("completed", steps=1, unread="its parser failed"), "its parser failed (1 of 5 steps read)"),
        (evidence("timeout", steps=1, unread="its parser failed"),
         "the time limit came after 1 of 5 steps; its parser failed"),
        (evidence("cancelled", steps=1, unread="its parser failed"), "cancelled after 1 of 5 steps"),
    ],
)  # fmt: skip
def test_the_reason_tells_how_far_it_came(told: Evidence, reason: str) -> None:
    assert decide(told).reason == reason
