"""``llmb cancel``."""

from __future__ import annotations

from typing import Annotated

import typer

import llmb
from llmb.cli import output
from llmb.cli.follow import NAMED_RUNS, follow_runs, open_session, print_runs
from llmb.cli.options import AsJson, runs_argument

Runs = Annotated[
    list[str], runs_argument("Run ids, unique prefixes, or filters in braces such as '{state=queued gpus=64}'.")
]


def cancel(runs: Runs, as_json: AsJson = False) -> None:
    """Cancel runs and wait until they have ended."""
    with open_session(lambda report_activity: llmb.cancel(runs, report_activity=report_activity)) as session:
        ended = _name_runs(session)
        error = follow_runs(session, "cancelling", as_json=as_json, ended=ended)
        print_runs(session, error, as_json=as_json)
    raise typer.Exit(error.exit_code if error else 0)


def _name_runs(session: llmb.Session) -> list[str]:
    """Print which runs are cancelled, and which ended before. Return those that ended."""
    results = session.results
    ended = [result.run_id for result in results if result.ended]
    cancelled = [result.run_id for result in results if not result.ended]
    for title, names in (("cancelling ", cancelled), ("already ended: ", ended)):
        if names:
            output.print_message(title + llmb.first_names(names, NAMED_RUNS))
    return ended
