"""``llmb plugins``."""

from __future__ import annotations

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson


def plugins(as_json: AsJson = False) -> None:
    """List the installed plugins and their errors."""
    found = llmb.list_plugins()
    if as_json:
        output.print_json({"plugins": [each.as_dict() for each in found]})
        return
    from llmb.cli.views.plugins import print_plugins

    print_plugins(found)
