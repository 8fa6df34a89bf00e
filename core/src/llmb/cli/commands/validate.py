"""``llmb validate``."""

from __future__ import annotations

import llmb
from llmb.cli import output
from llmb.cli.options import AsJson, Overrides, Spec, TargetName
from llmb.cli.spec_in_remedies import SpecArguments


def validate(spec: Spec, overrides: Overrides = None, target: TargetName = None, as_json: AsJson = False) -> None:
    """Check a spec, report all errors together, and change nothing."""
    from llmb.cli.views.choose_view import show_activity

    arguments, registry = SpecArguments(spec, target, overrides or ()), llmb.PluginRegistry()
    with arguments.named_in_errors(), show_activity(f"checking {spec}"):
        workload = arguments.load(registry)
        llmb.validate(workload, registry=registry)
    for note in workload.notes:
        output.print_message(note)
    if as_json:
        output.print_json({"file": workload.file, "runs": [each.run.name for each in workload.runs]})
    else:
        output.print_text(f"{spec}: valid, {llmb.counted(len(workload.runs), 'run')}")
