"""A virtual environment from a lock file, made once by uv on the host of a target."""

from __future__ import annotations

import shlex

from llmb.scripts.bash import assignments
from llmb.scripts.resources import resource_text
from llmb.values.frozen import content_key
from llmb.values.job import Task, Venv

MINOR_VERSIONS = range(8, 30)  # of Python 3


def venv_key(venv: Venv) -> str:
    """Names the environment by all that it is made of."""
    return f"venv-{content_key(venv.lock, venv.python)}"


def venv_folder(venv: Venv, cache: str) -> str:
    """Where it lies."""
    return f"{cache}/venv/{venv_key(venv)}"


def venv_task(venv: Venv, cache: str, *, uv: str = "", python: str = "") -> Task:
    """Make it, and know whether it is whole: its last file is written last, and its interpreter starts.

    ``uv`` and ``python`` are the programs to try first on that host. Without them uv is looked up there, or installed
    into the cache; an interpreter that uv has to bring lies there too, where all nodes that share the cache find it.
    """
    folder = shlex.quote(venv_folder(venv, cache))
    lines = [
        assignments(venv=venv_folder(venv, cache), cache=cache, uv=uv, wanted=venv.python, running=python),
        f"versions=({' '.join(_versions(venv.python))})",
        "lock() {",
        "cat <<'END_OF_LOCK'",
        venv.lock.rstrip("\n"),
    ]
    lines += ["END_OF_LOCK", "}", resource_text("llmb.hosts", "make_venv.sh")]
    return Task(
        key=venv_key(venv),
        kind="virtual environment",
        work="\n".join(lines),
        check=f"test -f {folder}/complete && {folder}/bin/python -c ''",
        space_gb=venv.space_gb,
    )


def _versions(wanted: str) -> list[str]:
    """The versions of Python that fit, such as 3.12 3.13; the lowest first, since locks are made for that."""
    from packaging.specifiers import SpecifierSet  # not needed to poll

    allowed = SpecifierSet(wanted)
    return [f"3.{minor}" for minor in MINOR_VERSIONS if allowed.contains(f"3.{minor}")]
