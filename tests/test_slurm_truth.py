"""The truth table of docs/slurm.md, row by row, and its list of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb.analysis.run_ending import determine_ending
from llmb_slurm.job_states import CAUSES, job_status
from llmb_slurm.parse_squeue_sacct import parse_sacct_line

DOCS = (Path(__file__).parents[1] / "docs/slurm.md").read_text()


def table(first: str) -> list[list[str]]:
    """Return the rows of the table whose heading begins with a text."""
    lines = iter(DOCS.splitlines())
    next(line for line in lines if line.startswith(f"| {first}"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


ROWS = table("Slurm's state")


@pytest.mark.parametrize("row", ROWS, ids=["-".join(row[:7]) for row in ROWS])
def test_a_row_of_the_truth_table(row: list[str]) -> None:
    state, code, step_code, reason, message, steps, nan, expected, run_reason = row
    found = parse_sacct_line(f"7|{state}|{code}|{step_code}|{reason}|a|batch|/w/runs/a")
    assert found
    ending = determine_ending(
        job_status(found),
        steps_done=5 if steps == "all" else 2,
        steps_requested=5,
        only_exit_left=steps == "all",
        nan=nan == "yes",
        messages={message} if message else set(),  # type: ignore[arg-type]  # the kinds are those of the table
    )
    assert ending.state == expected
    assert run_reason in ending.reason
    assert bool(ending.reason) == bool(run_reason)
    assert ending.state in ("completed", "cancelled") or ending.remedy


def test_every_end_of_slurm_is_in_the_table() -> None:
    assert set(CAUSES) - {row[0] for row in ROWS} == {"REVOKED"}  # only in federations of clusters
