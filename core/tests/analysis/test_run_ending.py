"""Truth table of endings, row by row."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from llmb.analysis.run_ending import Ending, determine_ending
from llmb.values.causes import Cause
from llmb.values.job_status import JobStatus
from llmb.values.run_states import END_STATES


def ending(cause: Any, *, steps: int = 5, reason: str = "", exit_code: int | None = None, **more: Any) -> Ending:
    job_id = more.pop("job_id", None)
    status = JobStatus(state="ended", cause=cause, reason=reason, exit_code=exit_code, job_id=job_id)
    return determine_ending(status, steps_done=steps, steps_requested=5, **more)


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
        ("failed", 5, True, "failed"),
        *((cause, 5, False, "failed") for cause in ("node failure", "launch failure", "dependency", "deadline")),
    ],
)
def test_the_state_follows_from_the_cause_and_the_steps(cause: str, steps: int, nan: bool, state: str) -> None:
    assert ending(cause, steps=steps, nan=nan, exit_code=0).state == state


@pytest.mark.parametrize(
    ("cause", "steps", "nan", "state"),
    [
        ("failed", 5, False, "completed"),
        ("failed", 4, False, "failed"),
        ("failed", 5, True, "failed"),
        ("out of memory", 5, False, "completed"),
        ("out of memory", 4, False, "failed"),
        *((cause, 5, False, "failed") for cause in ("preempted", "node failure", "launch failure", "deadline")),
        ("cancelled", 5, False, "cancelled"),
        ("lost", 5, False, "lost"),
    ],
)
def test_a_crash_with_only_the_exit_left_does_not_fail_a_run(cause: str, steps: int, nan: bool, state: str) -> None:
    assert ending(cause, steps=steps, nan=nan, exit_code=3, only_exit_left=True).state == state


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (ending("failed", exit_code=3, only_exit_left=True), "failed: exit code 3"),
        (ending("failed", exit_code=139, reason="rank 1: exit code 139", only_exit_left=True),
         "failed: rank 1: exit code 139"),
        (ending("out of memory", exit_code=137, reason="rank 1", only_exit_left=True),
         "failed: out of memory: rank 1 (exit code 137)"),
        (ending("failed", reason="killed", only_exit_left=True), "failed: killed"),
        (ending("timeout"), "hung until its time limit"),
    ],
)  # fmt: skip
def test_an_error_after_the_last_step_is_described(found: Ending, note: str) -> None:
    assert found.reason == f"after the last of 5 steps, the job {note}"


@pytest.mark.parametrize("cause", [cause for cause in get_args(Cause) if cause])
@pytest.mark.parametrize("steps", [0, 5])
@pytest.mark.parametrize("nan", [False, True])
def test_every_ending_has_an_end_state_and_a_reason_unless_all_is_well(cause: str, steps: int, nan: bool) -> None:
    found = ending(cause, steps=steps, nan=nan)
    assert found.state in END_STATES
    assert found.reason or (found.state == "completed" and cause == "completed")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ending("failed", steps=2, exit_code=3), "exit code 3 (after 2 of 5 steps)"),
        (ending("failed", reason="rank 1: exit code 3"), "rank 1: exit code 3 (after 5 of 5 steps)"),
        (ending("out of memory", reason="rank 0"), "out of memory: rank 0 (after 5 of 5 steps)"),
        (ending("node failure", steps=1), "node failure (after 1 of 5 steps)"),
        (ending("failed", steps=0, job_id="7"), "it failed (after 0 of 5 steps)"),
        (ending("failed", steps=0, reason="no image"), "no image"),
        (ending("timeout", steps=0), "hit the time limit after 0 of 5 steps"),
        (ending("lost", steps=1), "the end of the job is unknown (1 of 5 steps done)"),
        (ending("cancelled", steps=1), "cancelled after 1 of 5 steps"),
        (ending("timeout", steps=1), "hit the time limit after 1 of 5 steps"),
        (ending("completed", steps=1, parser_error="its parser failed"), "its parser failed (1 of 5 steps read)"),
        (ending("timeout", steps=1, parser_error="its parser failed"),
         "hit the time limit after 1 of 5 steps; its parser failed"),
        (ending("cancelled", steps=1, parser_error="its parser failed"), "cancelled after 1 of 5 steps"),
    ],
)  # fmt: skip
def test_the_reason_contains_the_number_of_steps(found: Ending, reason: str) -> None:
    assert found.reason == reason


def test_a_run_without_the_end_that_its_framework_prints_did_not_complete() -> None:
    status = JobStatus(state="ended", cause="completed", exit_code=0)
    ending = determine_ending(status, steps_done=5, steps_requested=5, missing_end='"done"')
    assert ending.state == "failed"
    assert ending.reason.endswith('after 5 of 5 steps, but the log lacks the end of the training, "done"')


def test_an_end_without_all_steps_names_the_reason_that_the_job_recorded() -> None:
    found = ending("completed", steps=4, reason="/work/runs/a: Disk quota exceeded")
    assert found.reason == "it ended without an error after 4 of 5 steps; /work/runs/a: Disk quota exceeded"


def test_a_run_that_ended_without_a_step_is_parsed_to_find_out_why() -> None:
    command = "`llmb parse LOGS --framework FRAMEWORK`"
    assert command in ending("completed", steps=0).remedy
    assert command not in ending("completed", steps=4).remedy
