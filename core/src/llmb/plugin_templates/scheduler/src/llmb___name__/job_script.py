"""The bash script of a job, and the paths of its logs."""

import shlex
from collections.abc import Iterator, Mapping

from llmb import (
    FrozenMap,
    Job,
    Phase,
    Target,
    Venv,
    assignments,
    environment_function,
    job_functions,
    resource_text,
    venv_folder,
)

from llmb___name__.options import Options


def job_script(job: Job, target: Target[Options]) -> str:
    """Return the script: settings with every value quoted, the functions of script.sh, and the phases."""
    functions = resource_text("llmb___name__", "script.sh")
    return "\n".join([*_settings(job, target), job_functions(), functions, *_calls(job)])


def _settings(job: Job, target: Target[Options]) -> Iterator[str]:
    base = job.environment.base
    yield "#!/usr/bin/env bash"
    yield assignments(job_id=job.id, run_dir=job.directory)
    yield f"time_limit_s={job.time_limit_s} grace_s={target.options.grace_s}"
    yield environment_function(job, venv=venv_folder(base, target.cache) if isinstance(base, Venv) else "")


def _calls(job: Job) -> Iterator[str]:
    for sidecar in job.sidecars:
        yield shlex.join(["sidecar", sidecar.name, *sidecar.command])
    for phase in job.phases:
        place = "inside" if phase.contained else "outside"
        yield shlex.join(["phase", phase.name, str(rank_count(job, phase)), place, *phase.words])
        yield from (f"check_output {shlex.join([phase.name, path])} 0" for path in phase.outputs)


def rank_count(job: Job, phase: Phase) -> int:
    """Return how many ranks run a phase. On one node, ``first`` and ``node`` both mean one rank."""
    return job.tasks_per_node if phase.ranks == "all" else 1


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """Return one log per phase and rank, and one per sidecar."""
    folder = f"{job.directory}/logs"
    logs = {
        phase.name: tuple(f"{folder}/{phase.name}.{{attempt}}.{rank}.log" for rank in range(rank_count(job, phase)))
        for phase in job.phases
    }
    return FrozenMap(logs | {each.name: (f"{folder}/{each.name}.{{attempt}}.log",) for each in job.sidecars})
