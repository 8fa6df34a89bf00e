"""``llmb attach``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import llmb
from llmb.cli import output
from llmb.cli.follow import exit_with_verdicts, follow_runs, open_session, print_runs
from llmb.cli.options import AsJson, WithCheck, runs_argument

RunsOrAll = Annotated[
    list[str] | None,
    runs_argument(
        "Run ids, unique prefixes, or filters in braces such as '{target=eos}'. [default: all unfinished runs]"
    ),
]


def attach(runs: RunsOrAll = None, check: WithCheck = False, as_json: AsJson = False) -> None:
    """Follow runs to their end, even if another process started them."""

    def start(report_activity: Callable[[str], object]) -> llmb.Session:
        report_activity("reading the records")
        return llmb.attach(runs or None, report_activity=report_activity)

    with open_session(start) as session:
        ended = [result.run_id for result in session.results if result.ended] if runs else ()
        error = follow_runs(session, "following", as_json=as_json, ended=ended)
        if not session.run_ids and not as_json:
            output.print_message("no run to follow; `llmb runs` lists all runs")
        results = print_runs(session, error, as_json=as_json)
    counted = [result for result in results if result.ended or not error]
    exit_with_verdicts(counted, llmb.judge_sets(llmb.find_repeats(results)) if check else (), error)
