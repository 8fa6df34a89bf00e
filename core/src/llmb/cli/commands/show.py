"""``llmb show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson, OneRun, find_run_or_newest, reject_combination


def show(
    run: OneRun = None,
    as_json: AsJson = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print one row per step as CSV.")] = False,
) -> None:
    """Show one run: state, metrics, verdict, cause of failure."""
    reject_combination({"--json": as_json, "--csv": csv})
    result = find_run_or_newest(run)
    if csv:
        output.print_text(_steps_text(result), newline=False)
        return
    sets = llmb.judge_sets(llmb.find_repeats([result]))
    if as_json:
        output.print_json(result.as_dict() | {"sets": [each.as_dict() for each in sets]})
        return
    from llmb.cli.views.results import print_results

    print_results([result], sets)


def _steps_text(result: llmb.RunResult) -> str:
    """Return the CSV of the steps. Raise RecordError if the run has none yet, or if a file of its record is missing."""
    if text := llmb.read_steps_text(result.directory):
        return text
    if result.ended:
        raise llmb.RecordError(f"{Path(result.directory, 'steps.csv')} is missing")
    raise llmb.RecordError(f"{result.run_id} has no steps yet; they are recorded when the run ends")
