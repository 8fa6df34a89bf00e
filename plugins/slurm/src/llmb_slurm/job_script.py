"""The batch script of a job, and the paths of its logs."""

import functools
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from llmb import (
    FrozenMap,
    Image,
    Job,
    Phase,
    SpecError,
    Target,
    Venv,
    environment_function,
    format_value,
    resource_text,
    script_template,
    venv_folder,
)
from llmb_slurm.choose_runtime import choose_runtime
from llmb_slurm.container_images import image_file
from llmb_slurm.options import SlurmOptions
from llmb_slurm.sbatch_directives import LOG, directives
from llmb_slurm.srun_options import container_options, srun_options

if TYPE_CHECKING:
    import jinja2

RANKS = {"all": "all_ranks", "first": "first_rank", "node": "each_node"}


def batch_script(job: Job, target: Target[SlurmOptions]) -> str:
    """Return the readable batch script of a job, with every value from a spec quoted.

    Raise SpecError if Slurm cannot run the job.
    """
    base = job.environment.base
    runtime = choose_runtime(job.environment, target)
    image = base if isinstance(base, Image) and runtime == "pyxis" else None
    container = container_options(job, image, target) if image else ()
    venv = venv_folder(base, target.cache) if isinstance(base, Venv) and runtime == "venv" else ""
    return _template().render(
        log=LOG,
        job=job,
        directives=directives(job, target),
        environment=environment_function(job, venv=venv),
        hidden=shlex.join(["SLURM_*", "SLURMD_*", *job.environment.secrets]),
        image=image,
        image_file=image_file(image, target.cache) if image else None,
        container=container,
        launch=shlex.join(srun_options(job, target)),
        used_ranks={*(phase.ranks for phase in job.phases), *(["node"] if job.sidecars else [])},
        sidecars=[(each, shlex.join(each.command)) for each in job.sidecars],
        phases=[_phase(phase, job, contained=bool(container)) for phase in job.phases],
    )


@functools.cache
def provenance_script() -> str:
    """Return the script by which a job describes where it runs, a file of its own: batch scripts stay short."""
    return script_template(resource_text("llmb_slurm", "provenance.sh.j2")).render()


@functools.cache
def _template() -> "jinja2.Template":
    """Compile the template once, because a sweep has many jobs."""
    return script_template(resource_text("llmb_slurm", "job.sh.j2"))


def _phase(phase: Phase, job: Job, *, contained: bool) -> Mapping[str, object]:
    options = f'"${{{RANKS[phase.ranks]}[@]}}"'
    if not phase.measured and not job.gpus_per_node:
        options += " --wait=0"  # the ranks of a task are independent, so one may end long before another
    if contained and phase.contained:
        options += ' "${container[@]}"'
    return {
        "name": phase.name,
        "options": options,
        "place": "inside" if phase.contained else "outside",
        "words": shlex.join(phase.words),
        "outputs": phase.outputs,
    }


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """Return one log per phase, in which srun labels each line with its rank, after that of Slurm; one per sidecar.

    Raise SpecError if a phase name cannot be the name of a log.
    """
    logs = {"slurm": (f"{job.directory}/{LOG}",)}
    for phase in job.phases:
        if phase.name == "slurm" or "/" in phase.name or "%" in phase.name:
            raise SpecError(
                f"invalid phase name {format_value(phase.name)}: it cannot name a log on Slurm; rename the phase"
            )
        logs[phase.name] = (f"{job.directory}/logs/{phase.name}.{{attempt}}.log",)
    for sidecar in job.sidecars:
        logs[sidecar.name] = (f"{job.directory}/logs/{sidecar.name}.{{attempt}}.log",)
    return FrozenMap(logs)
