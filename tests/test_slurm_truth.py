"""docs/slurm.md: its truth table, row by row, and its settings."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from llmb.analysis.run_state import Evidence, decide
from llmb_slurm.options import SlurmOptions
from llmb_slurm.status import CAUSES, from_sacct, job_status

DOCS = (Path(__file__).parents[1] / "docs/slurm.md").read_text()


def table(first: str) -> list[list[str]]:
    """The rows of the table whose head begins so."""
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
    state, code, step_code, reason, words, steps, nan, expected, told = row
    found = from_sacct(f"7|{state}|{code}|{step_code}|{reason}")
    assert found
    status = job_status(found)
    evidence = Evidence(
        cause=status.cause,
        exit_code=status.exit_code,
        reason=status.reason,
        steps_done=5 if steps == "all" else 2,
        steps_asked=5,
        nan=nan == "yes",
        remedy=status.remedy,
        messages=frozenset({words} if words else ()),  # type: ignore[arg-type]  # the kinds are those of the table
    )
    outcome = decide(evidence)
    assert outcome.state == expected
    assert told in outcome.reason
    assert bool(outcome.reason) == bool(told)
    assert outcome.state in ("completed", "cancelled") or outcome.remedy


def test_every_end_that_slurm_has_is_in_the_table() -> None:
    assert set(CAUSES) - {row[0] for row in ROWS} == {"REVOKED"}  # of federations of clusters


def test_every_setting_is_described() -> None:
    described = " ".join(row[0] for row in table("key of"))
    assert [name for name in attrs.fields_dict(SlurmOptions) if name not in described] == []
