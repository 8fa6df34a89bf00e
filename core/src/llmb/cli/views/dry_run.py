"""The plan that ``llmb run --dry-run`` prints as text."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Any

import llmb
from llmb.cli import output
from llmb.cli.spec_in_remedies import SpecArguments
from llmb.cli.views.numbers import format_number
from llmb.cli.views.sweep import KEYS_IN_NAME, describe_sweep
from llmb.cli.views.tables import Column, lay_out_table

COMMENT = "# "
"""The beginning of each line that is not part of a script."""

COMMAND_WIDTH = 120
"""The number of characters that are shown of a phase's command. The script contains all of it."""

ITEMS = {True: "exists", False: "to create first", None: "first, if not complete"}
"""Descriptions of items that exist, that are missing, and that are on another host, where a dry run checks nothing."""

RANKS = {"all": "all ranks", "first": "the first rank", "node": "one rank per node"}

DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp", "fsdp")

OPTIONAL = ("nodes", "dp", "micro_batch_size", "global_batch_size", "layers", "seq_len", "steps")
"""Columns of the table of runs that a narrow terminal leaves out, the last one first."""

SHOWN = {*KEYS_IN_NAME, "workload.recipe", *(f"parallelism.{name}" for name in DEGREES)}
"""Swept keys that are columns of their own."""


def print_plans(
    plans: Sequence[llmb.RunPlan], spec: SpecArguments, notes: Iterable[str], existing: Mapping[str, bool]
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
        for line in _point_table(plans, None if width is None else width - len(COMMENT)):
            output.print_prose(line, begin=COMMENT)
    _print_comments(_describe_cost(plans))
    for plan in plans:
        _print_comments(_describe(plan, existing))
        for phase in plan.job.phases:
            _print_phase(phase, plan.job)
        output.print_text(plan.script.text)


def _point_table(plans: Sequence[llmb.RunPlan], width: int | None) -> list[str]:
    """Return the lines of a table with a row for each run: its point, the parallelism, batch sizes and model.

    Columns that do not fit in ``width`` are named in the last line.
    """
    rows = [_row(plan) for plan in plans]
    titles = [title for title in rows[0] if any(row[title] not in ("", "-") for row in rows)]
    columns = [_column(title) for title in titles]
    cells = [[row[title] for title in titles] for row in rows]
    lines, note = lay_out_table(columns, cells, width)
    return [*(line.plain for line in lines), *filter(None, [note])]


def _column(title: str) -> Column:
    is_text = title in ("recipe", "gpu_type", "dtype", "sweep")
    return Column(title, right=not is_text, optional=title in OPTIONAL, wraps=20 if title == "sweep" else None)


def _row(plan: llmb.RunPlan) -> dict[str, str]:
    """Return the cells of a run by the title of their column. A degree that is off is ``-``."""
    run, parallelism = plan.run, plan.run.parallelism
    degrees = {name: getattr(parallelism, name) for name in DEGREES}
    return {
        "recipe": run.recipe,
        "gpu_type": run.gpu_type,
        "dtype": run.dtype,
        "gpus": str(run.gpus),
        "sweep": describe_sweep({key: value for key, value in plan.spec.swept.items() if key not in SHOWN}),
        "repeat": str(run.repeat) if plan.spec.repeats > 1 else "",
        "nodes": str(plan.job.nodes),
        **{name: "-" if degree in (None, 1) else str(degree) for name, degree in degrees.items()},
        "dp": str(parallelism.data_parallel(run.gpus)),
        "micro_batch_size": str(parallelism.micro_batch_size),
        "global_batch_size": str(parallelism.global_batch_size),
        "layers": _layers(run),
        "seq_len": str(run.seq_len),
        "steps": str(run.steps),
    }


def _layers(run: llmb.Run[Any]) -> str:
    """Return the number of layers, marked if the model is a proxy; "" if the recipe states no architecture."""
    if not run.architecture:
        return ""
    return f"{run.architecture.layers}{' (proxy)' if run.proxy else ''}"


def _print_comments(texts: Iterable[str]) -> None:
    for text in texts:
        for line in text.splitlines():
            output.print_prose(line, begin=COMMENT)


def _describe(plan: llmb.RunPlan, existing: Mapping[str, bool]) -> Iterable[str]:
    run, job = plan.run, plan.job
    yield f"{run.name} ({_describe_repeat(plan)}): {run.recipe}, release {run.release}"
    ranks = f"{llmb.counted(job.nodes, 'node')} x {llmb.counted(job.tasks_per_node, 'rank')}"
    yield f"{ranks}, {llmb.counted(run.steps, 'step')}, global batch size {run.parallelism.global_batch_size}"
    if run.architecture != run.published_architecture:
        layers, published = run.model.layers, run.published_model.layers
        sizes = f"{layers} of {llmb.counted(published, 'layer')}" if layers != published else "other sizes of the model"
        yield f"a proxy: {sizes}"
    if run.differences:
        consequence = "not comparable with the baseline" if run.baseline else "differs from the recipe"
        yield f"{consequence}: {', '.join(run.differences)}"
    if run.profile:
        yield f"profiled with {_describe_profile(run.profile, run.steps)}: recorded without a verdict"
    yield from (f"target.env: {name}={value}" for name, value in plan.target.env.items())
    yield from _describe_needed_items(plan, existing)


def _describe_cost(plans: Sequence[llmb.RunPlan]) -> Iterable[str]:
    """Yield the GPU hours of the training jobs if each of them uses its time limit. Yield nothing for CPUs."""
    gpu_hours = sum(plan.run.gpus * plan.job.time_limit_s for plan in plans if plan.run.gpu_type != "cpu") / 3600
    if gpu_hours:
        limits = "the time limit allows" if len(plans) == 1 else f"the time limits of {len(plans)} runs allow"
        yield f"{limits} at most {format_number(gpu_hours)} GPU hours, without preparation"


def _print_phase(phase: llmb.Phase, job: llmb.Job) -> None:
    """Print a phase with its command. If the command only starts a script of the job, print that script too."""
    command = shorten(shlex.join(phase.command), COMMAND_WIDTH)
    _print_comments([f"phase {phase.name} on {RANKS[phase.ranks]}: {command}"])
    interpreter, *arguments = phase.command
    if interpreter == "bash" and len(arguments) == 1:
        for line in job.files.get(arguments[0], "").splitlines():
            output.print_text(f"{COMMENT}  {line}")


def _describe_needed_items(plan: llmb.RunPlan, existing: Mapping[str, bool]) -> Iterable[str]:
    """Yield a line for each mount, each secret and each item of the preparation."""
    job = plan.job
    if isinstance(job.environment.base, llmb.Image):
        for mount in job.container_mounts(plan.target.cache):
            yield f"mount: {mount.source} at {mount.target}{' (read only)' if mount.read_only else ''}"
    for name in sorted(plan.secrets):
        yield f"needs {name} in the environment of llmb{'' if os.environ.get(name) else ', where it is not set'}"
    for task in plan.tasks:
        exists = existing.get(task.key)
        wanted = ITEMS[exists] if exists or task.task.work else "must exist"
        yield f"{wanted}: {task.task.kind} {task.key}{_describe_needs(task.task)}"


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
