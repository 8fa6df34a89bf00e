"""The table of docs/local.md: the state of a run at the end of its job on this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmb.analysis.run_ending import determine_ending
from llmb.values.causes import Cause
from llmb.values.job_status import JobStatus

PAGE = (Path(__file__).parents[1] / "docs/local.md").read_text()
TABLE = PAGE.partition("## The end of a run")[2].partition("## ")[0]
ROWS = re.findall(r"^\| ([^|]+) \| (all|some|any|otherwise)[^|]* \| `(\w+)`(, with a note)? \|$", TABLE, re.MULTILINE)
CAUSES: dict[str, Cause] = {
    "exit code 0": "completed",
    "a rank exits with an error or is killed": "failed",
    "time limit, counted from the start of the job's turn": "timeout",
    "time limit": "timeout",
    "`llmb cancel`": "cancelled",
    "the supervisor is killed, or the machine restarts": "lost",
}
"""The causes that the supervisor of a local job records. Other tests cover the supervisor."""


@pytest.mark.parametrize(("end", "steps", "state", "note"), ROWS)
def test_a_row_has_the_state_of_the_page(end: str, steps: str, state: str, note: str) -> None:
    for done in {"all": (5,), "some": (2,), "otherwise": (2,), "any": (2, 5)}[steps]:
        ending = determine_ending(
            JobStatus(state="ended", cause=CAUSES[end]), steps_done=done, steps_requested=5, only_exit_left=done == 5
        )
        assert ending.state == state
        assert state != "completed" or bool(ending.reason) == bool(note)


def test_the_table_has_every_row() -> None:
    assert len(ROWS) == TABLE.count("\n| ") - 1
    assert {row[0] for row in ROWS} == CAUSES.keys()


def test_a_missing_output_or_phase_is_a_failure() -> None:
    status = JobStatus(state="ended", cause="failed")
    assert determine_ending(status, steps_done=5, steps_requested=5, only_exit_left=False).state == "failed"


@pytest.mark.parametrize("end", CAUSES)
def test_a_run_whose_loss_was_nan_failed_unless_it_was_cancelled(end: str) -> None:
    status = JobStatus(state="ended", cause=CAUSES[end])
    ending = determine_ending(status, steps_done=5, steps_requested=5, only_exit_left=True, nan=True)
    assert ending.state == ("cancelled" if CAUSES[end] == "cancelled" else "failed")
