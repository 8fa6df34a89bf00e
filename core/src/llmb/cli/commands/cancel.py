"""``llmb cancel``."""

from __future__ import annotations

import typer

import llmb
from llmb.cli.follow import follow_runs, open_session, print_runs
from llmb.cli.options import AsJson, Runs


def cancel(runs: Runs, as_json: AsJson = False) -> None:
    """Cancel runs and wait until they have ended."""
    with open_session(lambda report_activity: llmb.cancel(runs, report_activity=report_activity)) as session:
        error = follow_runs(session, as_json=as_json)
        print_runs(session, error, as_json=as_json)
    raise typer.Exit(error.exit_code if error else 0)
