"""The bash of a job on one machine."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from llmb import Fault, FrozenMap, Job, Phase, SpecError, Target, environment_function, script_template, shown
from llmb_local.bash import library
from llmb_local.options import LocalOptions
from llmb_local.runtimes import Runtime

if TYPE_CHECKING:
    import jinja2


def job_script(
    job: Job, target: Target[LocalOptions], runtime: Runtime, *, where: str, machine_gpus: Sequence[int]
) -> str:
    """The script of a job: readable, with every value from a spec quoted.

    ``where`` says to people what the phases run in; ``machine_gpus`` are the numbers of all GPUs of the machine.
    """
    return _template().render(
        job=job,
        where=where,
        environment=environment_function(job, venv=runtime.venv(job, target.cache)),
        container=runtime.container(job, target),
        lock=lock_word(target.options.lock),
        max_parallel=target.options.max_parallel,
        machine_gpus=machine_gpus,
        grace_s=target.options.grace_s,
        secrets=shlex.join(job.environment.secrets),
        phases=[(phase, _call(job, phase)) for phase in job.phases],
        **{name: library(f"{name}.sh") for name in ("ranks", "containers", "turns")},
    )


@functools.cache
def _template() -> jinja2.Template:
    """Compiled once: a sweep has many jobs."""
    return script_template(library("job.sh.j2") + "\n")


def lock_word(lock: str) -> str:
    """The lock's path as a word of bash: $HOME and $HOSTNAME are expanded there, all else is quoted.

    Raises SpecError for one that is not the same file to all jobs.
    """
    if not re.match(r"(\$HOME)?/.*[^/]$", lock, re.DOTALL):
        raise SpecError(Fault(message=f"is {shown(lock)}", key="target.lock", expected="the absolute path of a file"))
    parts = re.split(r"(\$HOME\b|\$HOSTNAME\b)", lock)
    return "".join(f'"{part}"' if part.startswith("$H") else shlex.quote(part) for part in parts if part)


def tasks(job: Job, phase: Phase) -> int:
    """How many ranks run this phase: on one machine, the first and one per node are the same."""
    return job.tasks_per_node if phase.ranks == "all" else 1


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """A log for each rank, since ranks that share a file glue their lines together."""
    return FrozenMap(
        (
            phase.name,
            tuple(f"{job.directory}/logs/{phase.name}.{{attempt}}.{rank}.log" for rank in range(tasks(job, phase))),
        )
        for phase in job.phases
    )


def _call(job: Job, phase: Phase) -> str:
    """The call of bash's ``phase``. Which GPUs a job sees is decided by who gives them out."""
    decided = {"CUDA_VISIBLE_DEVICES"} if job.gpus_per_node else set()
    env = FrozenMap((name, value) for name, value in phase.env.items() if name not in decided)
    return shlex.join(["phase", phase.name, str(tasks(job, phase)), *attrs.evolve(phase, env=env).words])
