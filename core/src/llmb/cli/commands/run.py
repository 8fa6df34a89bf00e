"""``llmb run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

import llmb
from llmb.cli import output
from llmb.cli.follow import exit_with_verdicts, follow_runs, open_session, print_attach_command, print_runs
from llmb.cli.options import AsJson, Overrides, Spec, TargetName, WithCheck, print_ignored_options, reject_combination
from llmb.cli.spec_in_remedies import SpecArguments


def run(
    spec: Spec,
    overrides: Overrides = None,
    target: TargetName = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Prepare, submit all jobs that target.max_jobs allows, then exit.")
    ] = False,
    check: WithCheck = False,
    as_json: AsJson = False,
) -> None:
    """Run a workload: prepare, submit, follow, measure, record."""
    reject_combination({"--dry-run": dry_run, "--detach": detach})
    reject_combination({"--check": check, "--detach": detach})

    arguments = SpecArguments(spec, target, overrides or ())
    with arguments.named_in_errors():
        if dry_run:
            _dry_run(arguments, check=check, as_json=as_json)
        else:
            _run(arguments, detach=detach, check=check, as_json=as_json)


def _run(arguments: SpecArguments, *, detach: bool, check: bool, as_json: bool) -> None:
    def start(report_activity: Callable[[str], object]) -> llmb.Session:
        report_activity(f"reading {arguments.path}")
        registry = llmb.PluginRegistry()
        return llmb.start(arguments.load(registry), report_activity=report_activity, registry=registry)

    with open_session(start) as session:
        error = follow_runs(session, "starting", as_json=as_json, detach=detach)
        results = print_runs(session, error, as_json=as_json)
    if detach and not as_json and not error:
        print_attach_command(session, "starting")
    counted = [result for result in results if result.ended or not (detach or error)]
    exit_with_verdicts(counted, llmb.judge_sets(results) if check else (), error)


def _dry_run(arguments: SpecArguments, *, check: bool, as_json: bool) -> None:
    from llmb.cli.views.choose_view import show_activity
    from llmb.cli.views.dry_run import print_plans

    with show_activity(f"planning {arguments.path}"):
        registry = llmb.PluginRegistry()
        workload = arguments.load(registry)
        print_ignored_options({"--check": check}, "in a dry run")
        plans = llmb.plan(workload, registry=registry)
        existing = llmb.find_existing_items(plans)
    if as_json:
        for note in workload.notes:
            output.print_message(note)
        _print_documents(plans, existing)
    else:
        print_plans(plans, arguments, workload.notes, existing)


def _print_documents(plans: Sequence[llmb.RunPlan], existing: Mapping[str, bool]) -> None:
    """Print the tasks that runs share, by key, and the runs.

    ``existing`` states which tasks exist: true, false, or null if they are on another host.
    """
    shared: dict[str, llmb.TaskPlan] = {}
    for plan in plans:
        for task in plan.tasks:
            shared.setdefault(task.key, task)
    preparations = {key: {**task.as_dict(), "exists": existing.get(key)} for key, task in shared.items()}
    runs = (_as_dict(plan, shared, existing) for plan in plans)
    output.print_json_stream({"preparations": preparations}, "runs", runs)


def _as_dict(plan: llmb.RunPlan, shared: Mapping[str, llmb.TaskPlan], existing: Mapping[str, bool]) -> dict[str, Any]:
    """Return a plan. Of its preparation, it has only what differs from the shared tasks of the same keys."""
    document = plan.as_dict()
    for item, task in zip(document["preparation"], plan.tasks, strict=True):
        if task != shared[task.key]:  # such as the script on another target
            common = shared[task.key].as_dict()
            item |= {key: value for key, value in task.as_dict().items() if value != common[key]}
        item["exists"] = existing.get(task.key)
    return document
