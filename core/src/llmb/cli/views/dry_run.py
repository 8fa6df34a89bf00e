"""The plan that ``llmb run --dry-run`` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from textwrap import shorten
from typing import Any

import attrs

from llmb.cli import output
from llmb.cli.views.sweep import describe_sweep
from llmb.cli.views.text import counted
from llmb.planning import RunPlan, TaskPlan
from llmb.spec.structure import unstructure
from llmb.values.job import Environment, Image, Job, Task
from llmb.values.run import Profile
from llmb.values.workload import RunSpec

COMMAND = 120
"""How much of a phase's command is shown, in characters; the script has it whole."""

RANKS = {"all": "all ranks", "first": "the first rank", "node": "one rank a node"}


def plan_document(planned: RunPlan) -> dict[str, Any]:
    """The spec's values, and ``job``, ``script`` and ``preparation`` as they would be."""
    run = planned.run
    return {
        "name": run.name,
        "recipe": run.recipe,
        "release": run.release,
        "gpu_type": run.gpu_type,
        "dtype": run.dtype,
        "gpus": run.gpus,
        "steps": run.steps,
        "repeat": run.repeat,
        "repeats": planned.placed.repeats,
        "sweep": unstructure(planned.placed.swept),
        "parallelism": {**attrs.asdict(run.parallelism), "dp": run.parallelism.data_parallel(run.gpus)},
        "model": unstructure(run.model),
        "window": run.window if run.window == "last" else list(run.window),
        "tolerance": run.tolerance,
        "differences": list(run.differences),
        "image": run.image.ref if run.image else None,
        "time_limit_s": run.time_limit_s,
        "framework": unstructure(run.options),
        "env": dict(run.env),
        "mounts": [attrs.asdict(mount) for mount in run.mounts],
        "profile": attrs.asdict(run.profile) if run.profile else None,
        "target": {
            "name": planned.target.name,
            "scheduler": planned.target.scheduler,
            "host": planned.target.host,
            "workdir": planned.target.workdir,
            **unstructure(planned.target.options),
        },
        "job": job_document(planned.job),
        "script": planned.script.text,
        "preparation": [_task_document(task) for task in planned.tasks],
    }


def job_document(job: Job) -> dict[str, Any]:
    """The neutral job as JSON."""
    return {
        "image": _image(job.environment),
        "nodes": job.nodes,
        "tasks_per_node": job.tasks_per_node,
        "gpus_per_node": job.gpus_per_node,
        "time_limit_s": job.time_limit_s,
        "env": dict(job.env),
        "mounts": [attrs.asdict(mount) for mount in job.mounts],
        "files": dict(job.files),
        "phases": [
            {
                "name": phase.name,
                "command": list(phase.command),
                "env": dict(phase.env),
                "ranks": phase.ranks,
                "measured": phase.measured,
                "outputs": list(phase.outputs),
            }
            for phase in job.phases
        ],
    }


def _image(environment: Environment) -> str | None:
    return environment.base.ref if isinstance(environment.base, Image) else None


def _task_document(planned: TaskPlan) -> dict[str, Any]:
    work = planned.task.work
    return {
        "key": planned.key,
        "kind": planned.task.kind,
        "job": None if isinstance(work, str) else job_document(work),
        "script": planned.script.text,
        "check": planned.task.check,
        "space_gb": planned.task.space_gb,
        "secrets": list(planned.task.secrets),
    }


def print_plan(runs: Iterable[RunPlan], notes: Iterable[str] = ()) -> None:
    """The plan for people: what comes first, the phases, and the script; ``notes`` are those of the workload."""
    for note in notes:
        output.print_text(f"# {note}")
    for planned in runs:
        run, job = planned.run, planned.job
        output.print_text(f"# {run.name} ({_of_sweep(planned.placed)}): {run.recipe}, release {run.release}")
        batch = run.parallelism.global_batch_size
        ranks = f"{counted(job.nodes, 'node')} x {counted(job.tasks_per_node, 'rank')}"
        output.print_text(f"# {ranks}, {counted(run.steps, 'step')}, global batch size {batch}")
        if run.differences:
            what = "not comparable with the baseline" if run.baseline else "not as the recipe has it"
            output.print_text(f"# {what}: {', '.join(run.differences)}")
        if run.profile:
            output.print_text(f"# captured by {_capture(run.profile, run.steps)}: recorded, and not judged")
        for note in planned.script.notes:
            output.print_text(f"# {note}")
        for task in planned.tasks:
            output.print_text(f"# first, unless it is there: {task.task.kind} {task.key}{_needs(task.task)}")
        for phase in job.phases:
            output.print_text(
                f"# phase {phase.name} on {RANKS[phase.ranks]}: {shorten(shlex.join(phase.command), COMMAND)}"
            )
        output.print_text(planned.script.text)


def _of_sweep(placed: RunSpec) -> str:
    """Which of the runs of its spec it is."""
    of = f" of {placed.repeats}" if placed.repeats > 1 else ""
    swept = describe_sweep(placed.swept)
    return f"repeat {placed.run.repeat}{of}{'; ' if swept else ''}{swept}"


def _capture(profile: Profile, steps: int) -> str:
    """What captures a run, and which of its steps; NCCL traces them all."""
    if profile.tool != "nsys":
        return profile.tool
    first, last = profile.start_step or 0, steps if profile.stop_step is None else profile.stop_step
    return f"{profile.tool}, steps {first} to {last}"


def _needs(task: Task) -> str:
    needs = [f"{task.space_gb:g} GB of free space"] if task.space_gb else []
    needs += [f"{name} in the environment" for name in task.secrets]
    return f", which needs {' and '.join(needs)}" if needs else ""
