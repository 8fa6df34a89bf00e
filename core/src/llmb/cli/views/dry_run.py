"""The plan that ``llmb run --dry-run`` prints as text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten

import llmb
from llmb.cli import output
from llmb.cli.typed_spec import TypedSpec
from llmb.cli.views.numbers import counted
from llmb.cli.views.planned_runs import point_table
from llmb.cli.views.sweep import describe_sweep

COMMENT = "# "
"""The beginning of each line that is not part of a script."""

COMMAND_WIDTH = 120
"""The number of characters that are shown of a phase's command. The script contains all of it."""

ITEMS = {True: "exists", False: "to create first", None: "first, if not complete"}
"""Descriptions of items that exist, that are missing, and that are on another host, where a dry run checks nothing."""

RANKS = {"all": "all ranks", "first": "the first rank", "node": "one rank per node"}


def print_plans(
    plans: Sequence[llmb.RunPlan],
    spec: TypedSpec,
    notes: Iterable[str] = (),
    existing: Mapping[str, bool] = llmb.FrozenMap(),
) -> None:
    """Print the notes and a table of several runs, and for each run the preparation, the phases and the script.

    The notes name ``spec``. ``existing`` maps the key of each item of this machine to whether it exists.
    """
    lines = [*notes, *dict.fromkeys(note for plan in plans for note in plan.script.notes)]
    if any(task.key not in existing for plan in plans for task in plan.tasks):
        doctor = spec.name_in("`llmb doctor SPEC`")
        lines.append(f"a dry run does not connect to other hosts; {doctor} lists the items that exist there")
    _print_comments(lines)
    if len(plans) > 1:
        width = output.terminal_width()
        for line in point_table(plans, None if width is None else width - len(COMMENT)):
            output.print_prose(line, begin=COMMENT)
    for plan in plans:
        _print_comments(_describe(plan, existing))
        output.print_text(plan.script.text)


def _print_comments(texts: Iterable[str]) -> None:
    for text in texts:
        for line in text.splitlines():
            output.print_prose(line, begin=COMMENT)


def _describe(plan: llmb.RunPlan, existing: Mapping[str, bool]) -> Iterable[str]:
    run, job = plan.run, plan.job
    yield f"{run.name} ({_describe_repeat(plan)}): {run.recipe}, release {run.release}"
    ranks = f"{counted(job.nodes, 'node')} x {counted(job.tasks_per_node, 'rank')}"
    yield f"{ranks}, {counted(run.steps, 'step')}, global batch size {run.parallelism.global_batch_size}"
    if run.architecture != run.published_architecture:
        layers, published = run.model.layers, run.published_model.layers
        sizes = f"{layers} of {counted(published, 'layer')}" if layers != published else "other sizes of the model"
        yield f"a proxy: {sizes}"
    if run.differences:
        consequence = "not comparable with the baseline" if run.baseline else "differs from the recipe"
        yield f"{consequence}: {', '.join(run.differences)}"
    if run.profile:
        yield f"profiled with {_describe_profile(run.profile, run.steps)}: recorded without a verdict"
    yield from (f"target.env: {name}={value}" for name, value in plan.target.env.items())
    yield from _describe_needed_items(plan, existing)
    for phase in job.phases:
        yield f"phase {phase.name} on {RANKS[phase.ranks]}: {shorten(shlex.join(phase.command), COMMAND_WIDTH)}"


def _describe_needed_items(plan: llmb.RunPlan, existing: Mapping[str, bool]) -> Iterable[str]:
    """Yield a line for each mount, each secret and each item of the preparation."""
    job = plan.job
    if isinstance(job.environment.base, llmb.Image):
        for mount in job.container_mounts(plan.target.cache):
            yield f"mount: {mount.source} at {mount.target}{' (read only)' if mount.read_only else ''}"
    for name in sorted(plan.secrets):
        yield f"needs {name} in the environment of llmb{'' if os.environ.get(name) else ', where it is not set'}"
    for task in plan.tasks:
        yield f"{ITEMS[existing.get(task.key)]}: {task.task.kind} {task.key}{_describe_needs(task.task)}"


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
