"""The bash that schedulers write: templates of job scripts, and the functions that all of them need."""

from __future__ import annotations

import shlex
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def script_template(text: str) -> jinja2.Template:
    """A Jinja template of bash, in which a missing variable is an error and ``| q`` quotes what comes from a spec.

    ``{{ task_functions }}`` stands for functions of bash: ``export_rank`` and ``export_master`` set what each task must
    find in its environment (see `Job`), ``free_port`` finds a port for rank 0, ``tell_node`` prints lines of a
    provenance.
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
    environment.globals["task_functions"] = files("llmb.jobs").joinpath("tasks.sh").read_text().rstrip("\n")
    return environment.from_string(text)


def assignments(**values: str) -> str:
    """A line of bash for each variable, with its value quoted."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
