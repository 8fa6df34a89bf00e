"""The bash of a job on one machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from importlib.resources import files

from llmb import FrozenMap, Job, Phase, Venv, venv_folder


def job_script(job: Job, cache: str, *, lock: str, grace_s: int) -> str:
    """The script of a job: readable, with every value from a spec quoted."""
    import jinja2  # heavy, and not needed to poll

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # the text is bash, not HTML: quoting is done by the filter `q`
    )
    environment.filters["q"] = lambda value: shlex.quote(str(value))
    template = environment.from_string(files("llmb_local").joinpath("job.sh.j2").read_text())
    base = job.environment.base
    return template.render(
        job=job,
        venv=venv_folder(base, cache) if isinstance(base, Venv) else None,
        lock=lock_word(lock),
        grace_s=grace_s,
        phases=[(phase, _words(phase), tasks(job, phase)) for phase in job.phases],
    )


def lock_word(lock: str) -> str:
    """The lock's path as a word of bash: $HOME and $HOSTNAME are expanded there, all else is quoted."""
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


def _words(phase: Phase) -> str:
    env = [f"{name}={value}" for name, value in phase.env.items()]
    return shlex.join([*(["env", *env] if env else []), *phase.command])
