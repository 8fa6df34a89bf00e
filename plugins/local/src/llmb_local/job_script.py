"""The bash script of a job on this machine, and the paths of its logs."""

import functools
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from llmb import (
    Fault,
    FrozenMap,
    Job,
    Phase,
    SpecError,
    Target,
    environment_function,
    format_value,
    lock_function,
    script_template,
)
from llmb_local.bash_files import bash_file
from llmb_local.options import LocalOptions
from llmb_local.runtimes import Runtime

if TYPE_CHECKING:
    import jinja2


def job_script(
    job: Job, target: Target[LocalOptions], runtime: Runtime, *, where: str, machine_gpus: Sequence[int]
) -> str:
    """Return the readable bash script of a job, with every value from a spec quoted.

    ``where`` describes for a reader of the script what runs the phases. ``machine_gpus`` are the indices of all GPUs
    that jobs may use.
    """
    return _template().render(
        job=job,
        where=where,
        environment=environment_function(job, venv=runtime.venv(job, target.cache)),
        runtime=runtime.container(job, target),
        lock=lock_word(target.options.lock),
        max_parallel=target.options.max_parallel,
        machine_gpus=machine_gpus,
        grace_s=target.options.grace_s,
        secrets=shlex.join(job.environment.secrets),
        sidecars=[(each, shlex.join(each.command)) for each in job.sidecars],
        phases=[(phase, _call(job, phase)) for phase in job.phases],
        start_ranks=bash_file("start_ranks.sh"),
        container_cleanup=bash_file("runtimes/container_cleanup.sh"),
        gpu_queue=f"{lock_function()}\n\n{bash_file('gpu_queue.sh')}",
    )


@functools.cache
def _template() -> "jinja2.Template":
    """Compile the template once, because a sweep has many jobs."""
    return script_template(bash_file("job.sh.j2") + "\n")


def lock_word(lock: str) -> str:
    """Return the path of the lock as a bash word that expands $HOME and $HOSTNAME and quotes the rest.

    Raise SpecError if the path is relative, because it must name the same file for all jobs, or if it contains control
    characters.
    """
    if not lock.isprintable() or not re.fullmatch(r"(\$HOME)?/.*[^/]", lock):
        message = f"invalid lock file {format_value(lock)}"
        raise SpecError(Fault(message=message, key="target.lock", expected="the absolute path of a file"))
    parts = re.split(r"(\$HOME\b|\$HOSTNAME\b)", lock)
    return "".join(f'"{part}"' if part.startswith("$H") else shlex.quote(part) for part in parts if part)


def rank_count(job: Job, phase: Phase) -> int:
    """Return how many ranks run a phase. On one machine, ``first`` and ``node`` both mean one rank."""
    return job.tasks_per_node if phase.ranks == "all" else 1


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """Return the log of the job, one per phase and rank, because ranks would interleave lines, and one per sidecar."""
    logs: dict[str, tuple[str, ...]] = {"llmb-local": (f"{job.directory}/out.log",)}
    folder = f"{job.directory}/logs"
    for phase in job.phases:
        ranks = range(rank_count(job, phase))
        logs[phase.name] = tuple(f"{folder}/{phase.name}.{{attempt}}.{rank}.log" for rank in ranks)
    for sidecar in job.sidecars:
        logs[sidecar.name] = (f"{folder}/{sidecar.name}.{{attempt}}.log",)
    return FrozenMap(logs)


def _call(job: Job, phase: Phase) -> str:
    """Return the call of the bash function ``phase``, without variables that the GPU queue sets."""
    set_by_queue = {"CUDA_VISIBLE_DEVICES"} if job.gpus_per_node else set()
    env = FrozenMap((name, value) for name, value in phase.env.items() if name not in set_by_queue)
    return shlex.join(["phase", phase.name, str(rank_count(job, phase)), *attrs.evolve(phase, env=env).words])
