"""The bash that schedulers write: templates of job scripts, and the functions that all of them need."""

from __future__ import annotations

import shlex
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


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
    which ``tell_software`` adds what the first rank finds in its own environment. ``output`` ends the job where a file
    of a phase is missing, and says so by ``tell WHY``, which is the scheduler's. The last three are called in the run's
    directory.
    """
    return files("llmb.jobs").joinpath("tasks.sh").read_text().rstrip("\n")


def assignments(**values: str) -> str:
    """A line of bash for each variable, with its value quoted."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
