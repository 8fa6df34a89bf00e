"""``llmb runs``."""

from __future__ import annotations

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson


def runs(as_json: AsJson = False) -> None:
    """List all recorded runs, newest last."""
    found = llmb.list_runs()
    if as_json:
        output.print_json({"runs": [each.as_dict() for each in found]})
    elif found:
        from llmb.cli.views.results import print_run_list

        print_run_list(found)
    else:
        output.print_message(f"no runs in {llmb.home_folder()}")
