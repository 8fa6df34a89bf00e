"""Tasks that create a Python virtual environment from a lock file with uv on the target's host."""

import functools
import shlex

from llmb.files import resource_text
from llmb.scripts.job_functions import assignments
from llmb.values.environment import Venv
from llmb.values.frozen import content_key
from llmb.values.job import Task

MINOR_VERSIONS = range(8, 30)  # of Python 3


def venv_key(venv: Venv) -> str:
    """Return the name of the environment, derived from its lock file and Python versions."""
    return f"venv-{content_key(venv.lock, venv.python)}"


def venv_folder(venv: Venv, cache: str) -> str:
    """Return the folder in which `venv_task` creates the environment."""
    return f"{cache}/venv/{venv_key(venv)}"


@functools.lru_cache  # the runs of a sweep share the task, which has the text of the lock file
def venv_task(venv: Venv, cache: str, *, uv: str = "", python: str = "") -> Task:
    """Return the task that creates the environment with uv.

    The environment is complete if the file ``complete``, which is written last, exists and its interpreter starts.
    ``uv`` and ``python`` are the programs to try first on that host. If ``uv`` is empty or missing, the task searches
    for uv, and installs uv into the cache if it finds none. Python versions that uv downloads also go into the cache,
    which all nodes share.
    """
    folder = shlex.quote(venv_folder(venv, cache))
    lines = [
        assignments(venv=venv_folder(venv, cache), cache=cache, uv=uv, wanted=venv.python, running=python),
        f"versions=({' '.join(_versions(venv.python))})",
        "print_lock_file() {",
        "cat <<'END_OF_LOCK'",
        venv.lock.rstrip("\n"),
    ]
    lines += ["END_OF_LOCK", "}", resource_text("llmb.hosts", "venv.sh")]
    return Task(
        key=venv_key(venv),
        kind="virtual environment",
        work="\n".join(lines),
        check=f"test -f {folder}/complete && {folder}/bin/python -c ''",
        space_gb=venv.space_gb,
    )


def _versions(wanted: str) -> list[str]:
    """Return the Python versions that a specifier allows, such as 3.12 and 3.13.

    The lowest version comes first, because lock files are resolved for it.
    """
    from packaging.specifiers import SpecifierSet  # not needed to poll

    allowed = SpecifierSet(wanted)
    return [f"3.{minor}" for minor in MINOR_VERSIONS if allowed.contains(f"3.{minor}")]
