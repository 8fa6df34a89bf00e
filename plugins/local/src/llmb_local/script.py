"""The bash of a job on one machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files

from llmb import FrozenMap, Job, Phase, Venv
from llmb_local.venv import venv_folder


def job_script(job: Job, lock: str, cache: str) -> str:
    """The script of a job: readable, with every value from a spec quoted."""
    import jinja2  # heavy, and not needed to poll

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )  # the text is bash, not HTML: quoting is done by the filter `q`
    environment.filters["q"] = lambda value: shlex.quote(str(value))
    template = environment.from_string(files("llmb_local").joinpath("job.sh.j2").read_text())
    base = job.environment.base
    return template.render(
        job=job,
        venv=venv_folder(base, cache) if isinstance(base, Venv) else None,
        lock="$UID".join(shlex.quote(part) if part else "" for part in lock.split("$UID")),
        phases=[(phase, _words(phase), tasks(job, phase)) for phase in job.phases],
    )


def tasks(job: Job, phase: Phase) -> int:
    """How many ranks run this phase: on one machine, the first and one per node are the same."""
    return job.tasks_per_node if phase.ranks == "all" else 1


def phase_logs(job: Job) -> Mapping[str, tuple[str, ...]]:
    """A log for each rank, since ranks that share a file glue their lines together."""
    return FrozenMap(
        (phase.name, tuple(f"{job.directory}/logs/{phase.name}.{{attempt}}.{rank}.log" for rank in range(tasks(job, phase))))
        for phase in job.phases
    )


def _words(phase: Phase) -> str:
    env = [f"{name}={value}" for name, value in phase.env.items()]
    return shlex.join([*(["env", *env] if env else []), *phase.command])
