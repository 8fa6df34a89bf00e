"""Building blocks of job scripts: the Jinja environment, bash functions for every job, variable assignments."""

import functools
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from llmb.files import resource_text

if TYPE_CHECKING:
    import jinja2

    from llmb.values.job import Job


def script_template(text: str) -> "jinja2.Template":
    """Compile a Jinja template of a bash script.

    The filter ``q`` quotes a value for bash; apply it to every value that comes from a spec. A variable that is missing
    when the template is rendered raises jinja2.UndefinedError. ``{{ job_functions }}`` inserts `job_functions`, and
    ``{{ functions_of(script) }}`` only those that this text names.
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
    environment.globals |= {"job_functions": job_functions(), "functions_of": functions_of}
    return environment.from_string(text)


def job_functions() -> str:
    """Return the bash functions that every job script needs. docs/hooks.md describes them."""
    files = ("job_functions.sh", "provenance_functions.sh")
    return "\n\n".join(resource_text("llmb.scripts", each).rstrip("\n") for each in files)


@attrs.frozen
class FailedProcess:
    """The process that failed first: its phase, its number among the processes of the phase, and its host."""

    phase: str
    number: int
    host: str | None


def read_failed_process(reason: str) -> FailedProcess | None:
    """Return the process in a reason of ``record_failure``, such as ``phase train, rank 3 on node7: exit code 1``."""
    found = re.search(r"(?:\bphase ([\w.-]+), )?\brank (\d+)(?: on ([\w.-]+))?: ", reason)
    return FailedProcess(found[1] or "", int(found[2]), found[3]) if found else None


def functions_of(script: str) -> str:
    """Return those of `job_functions` that a script names, directly or through each other, and does not define."""
    names = _functions().keys()
    own = frozenset(name for name in names if f"\n{name}() {{" in script)
    return _with_needed(frozenset(name for name in names if name in script) - own, own)


@functools.cache
def _with_needed(named: frozenset[str], own: frozenset[str]) -> str:
    """Return the text of functions and of those that they need. Leave out a script's own ones.

    It is kept, because most jobs of a sweep name the same functions.
    """
    functions, needed, found = _functions(), set[str](), named
    while found:
        needed |= found
        text = "".join(functions[name] for name in found)
        found = frozenset(name for name in functions if name in text) - needed - own
    return "\n\n".join(functions[name] for name in functions if name in needed)


@functools.cache
def _functions() -> Mapping[str, str]:
    """Return the text of each function with its comment, by name."""
    texts = re.split(r"\n\n(?=#|\w+\(\))", job_functions())
    return {re.findall(r"^\w+(?=\(\))", text, re.MULTILINE)[0]: text for text in texts}


def lock_function() -> str:
    """Return the bash function ``open_lock FILE``, which opens a lock that other users may share, and follows no link.

    It sets ``opened`` to the file descriptor, or fails and sets ``lock_error`` to the reason.
    """
    return resource_text("llmb.scripts", "open_lock.sh").rstrip("\n")


def environment_function(job: "Job", *, venv: str = "") -> str:
    """Return a bash function ``environment PLACE`` that sets the variables of ``job.env``.

    PLACE is ``inside`` or ``outside`` the container or virtual environment of the job (see `Phase`). ``venv`` is the
    folder of the virtual environment, if any. ``inside`` then activates it, and unsets PYTHONPATH and PYTHONHOME before
    the variables of the job are set. The scheduler sets rank, master and secrets afterwards.
    """
    folder = shlex.quote(venv)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in job.env.items()]
    if venv:
        lines.insert(0, '[ "$1" = outside ] || unset PYTHONPATH PYTHONHOME')
        lines.append(f'[ "$1" = outside ] || export VIRTUAL_ENV={folder} PATH={folder}/bin:$PATH')
    body = "\n".join(f"  {line}" for line in lines or [":"])
    usage = (
        'environment PLACE: set the variables of the job, "inside" or "outside" its container or virtual environment.'
    )
    return f"# {usage}\nenvironment() {{\n{body}\n}}"


def assignments(**values: str) -> str:
    """Return one bash assignment per line, with each value quoted."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
