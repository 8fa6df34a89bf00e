"""The bash that schedulers write: templates of job scripts, and the functions that all of them need."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from llmb.scripts.resources import resource_text

if TYPE_CHECKING:
    import jinja2

    from llmb.values.job import Job


def script_template(text: str) -> jinja2.Template:
    """A Jinja template of bash, in which a missing variable is an error and ``| q`` quotes what comes from a spec.

    ``{{ task_functions }}`` stands for what `task_functions` returns.
    """
    import jinja2  # heavy, and not needed to poll

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # the text is bash, not HTML: quoting is done by the filter `q`
    )
    environment.filters["q"] = lambda value: shlex.quote(str(value))
    environment.globals["task_functions"] = task_functions()
    return environment.from_string(text)


def task_functions() -> str:
    """Functions of bash that every job script needs.

    ``export_rank`` and ``export_master`` set what each task must find in its environment (see `Job`), ``free_port``
    finds a port on which rank 0 can listen, ``end_groups`` ends process groups, ``read_secrets`` takes the secrets that
    core has placed in the run's directory. ``tell_node`` prints what a node is as lines of the job's provenance, to
    which ``tell_software`` adds what the first rank finds in its own environment. ``tell WHY`` keeps why the job ends,
    the first time that it is called, in the file ``failed``, where `submit_detached` looks for it; a scheduler that has
    another way defines its own. ``output`` ends the job where a file of a phase is missing, and tells so. All but the
    first three are called in the run's directory.
    """
    return resource_text("llmb.scripts", "tasks.sh").rstrip("\n")


def environment_function(job: Job, *, venv: str = "") -> str:
    """A function of bash, ``environment PLACE``: what every task finds in its environment, but for its rank.

    ``venv`` is the folder of a virtual environment, which a task has whose place is not ``outside`` (see `Phase`). What
    Python would look for elsewhere is forgotten there, but not what the job says itself: that stands after it. Rank,
    master and secrets are for the scheduler to set afterwards.
    """
    folder = shlex.quote(venv)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in job.env.items()]
    if venv:
        lines.insert(0, '[ "$1" = outside ] || unset PYTHONPATH PYTHONHOME')
        lines.append(f'[ "$1" = outside ] || export VIRTUAL_ENV={folder} PATH={folder}/bin:$PATH')
    body = "\n".join(f"  {line}" for line in lines or [":"])
    return f"environment() {{ # of every rank: inside or outside\n{body}\n}}"


def assignments(**values: str) -> str:
    """A line of bash for each variable, with its value quoted."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
