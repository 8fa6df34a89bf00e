"""``llmb show``."""

from __future__ import annotations

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson, OneRun


def show(run: OneRun, as_json: AsJson = False) -> None:
    """Show one run: state, metrics, verdict, cause of failure."""
    result = llmb.find_run(run)
    sets = llmb.judge_sets(llmb.find_repeats([result]))
    if as_json:
        output.print_json(result.as_dict() | {"sets": [each.as_dict() for each in sets]})
        return
    from llmb.cli.views.results import print_results

    print_results([result], sets)
