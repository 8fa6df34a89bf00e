"""The plan that ``llmb run --dry-run`` prints as text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from textwrap import shorten

import llmb
from llmb.cli import output
from llmb.cli.views.sweep import describe_sweep
from llmb.cli.views.tables import counted

COMMAND_WIDTH = 120
"""The number of characters that are shown of a phase's command. The script contains all of it."""

RANKS = {"all": "all ranks", "first": "the first rank", "node": "one rank per node"}


def print_plans(plans: Iterable[llmb.RunPlan], notes: Iterable[str] = ()) -> None:
    """Print the notes, and for each run the preparation, the phases and the script."""
    for note in notes:
        output.print_text(f"# {note}")
    for plan in plans:
        for line in _describe(plan):
            output.print_text(f"# {line}")
        output.print_text(plan.script.text)


def _describe(plan: llmb.RunPlan) -> Iterable[str]:
    run, job = plan.run, plan.job
    yield f"{run.name} ({_describe_repeat(plan)}): {run.recipe}, release {run.release}"
    ranks = f"{counted(job.nodes, 'node')} x {counted(job.tasks_per_node, 'rank')}"
    yield f"{ranks}, {counted(run.steps, 'step')}, global batch size {run.parallelism.global_batch_size}"
    if run.model != run.published_model:
        yield f"a proxy: {run.model.layers} of {counted(run.published_model.layers, 'layer')}"
    if run.differences:
        consequence = "not comparable with the baseline" if run.baseline else "differs from the recipe"
        yield f"{consequence}: {', '.join(run.differences)}"
    if run.profile:
        yield f"profiled with {_describe_profile(run.profile, run.steps)}: recorded without a verdict"
    for name, value in plan.target.env.items():
        yield f"target.env: {name}={value}"
    for mount in plan.target.mounts:
        yield f"target.mounts: {mount.source} at {mount.target}{' (read only)' if mount.read_only else ''}"
    yield from _describe_secrets(plan.secrets)
    yield from plan.script.notes
    for task in plan.tasks:
        yield f"first, if not complete: {task.task.kind} {task.key}{_describe_needs(task.task)}"
    for phase in job.phases:
        yield f"phase {phase.name} on {RANKS[phase.ranks]}: {shorten(shlex.join(phase.command), COMMAND_WIDTH)}"


def _describe_secrets(names: Iterable[str]) -> Iterable[str]:
    """Yield each variable that the run or its preparation needs, and whether it is set."""
    for name in sorted(names):
        yield f"needs {name} in the environment of llmb{'' if os.environ.get(name) else ', where it is not set'}"


def _describe_repeat(plan: llmb.RunPlan) -> str:
    count = f" of {plan.spec.repeats}" if plan.spec.repeats > 1 else ""
    sweep = describe_sweep(plan.spec.swept)
    return f"repeat {plan.run.repeat}{count}{'; ' if sweep else ''}{sweep}"


def _describe_profile(profile: llmb.Profile, steps: int) -> str:
    """Return the tool and, if the tool captures only some steps, which."""
    if profile.tool != "nsys":
        return profile.tool
    first, last = profile.start_step or 0, steps if profile.stop_step is None else profile.stop_step
    return f"{profile.tool}, steps {first} to {last}"


def _describe_needs(task: llmb.Task) -> str:
    needs = [f"{task.space_gb:g} GB of free space"] if task.space_gb else []
    needs += [f"{name} in the environment" for name in task.secrets]
    return f", needs {' and '.join(needs)}" if needs else ""
