"""Which runs wait for a shared task: files beside its job, so that every process knows, whatever records it keeps.

A run whose process was killed may be driven on at any time, so it waits still; at worst a task goes on for nobody.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from llmb.hookspecs import Host
from llmb.values.errors import TargetError
from llmb.values.job import Script

_TELL = """
tell() { # task, folder: the runs that wait for it, after those that do no more are forgotten
  cd "$2" 2>/dev/null || return 0
  rm -f -- "${over[@]}" || exit 1
  for run in *; do [ ! -e "$run" ] || printf '%s\\t%s\\n' "$1" "$run"; done
}
"""


def add_references(waiting: Iterable[tuple[Script, str]], host: Host) -> None:
    """Note that runs wait for tasks: pairs of a task's script and a run's id. Raises TargetError."""
    files = [f"{_folder(script)}/{run_id}" for script, run_id in waiting]
    if files:
        folders = dict.fromkeys(file.rpartition("/")[0] for file in files)
        _run(f"{shlex.join(['mkdir', '-p', *folders])} && {shlex.join(['touch', *files])}", host)


def list_references(scripts: Iterable[Script], over: Iterable[str], host: Host) -> Mapping[str, list[str]]:
    """The ids of the runs that wait for each task, once those that are ``over`` are forgotten. Raises TargetError."""
    calls = [shlex.join(["tell", script.id, _folder(script)]) for script in scripts]
    waiting: dict[str, list[str]] = {}
    for line in _run("\n".join([f"over=({shlex.join(over)})", _TELL, *calls]), host).splitlines():
        key, run_id = line.split("\t")
        waiting.setdefault(key, []).append(run_id)
    return waiting


def drop_references(waiting: Iterable[tuple[Script, str]], host: Host) -> None:
    """Forget these pairs of a task's script and a run's id; with no id all that wait for it. Raises TargetError."""
    if files := [f"{_folder(script)}/{run_id}" for script, run_id in waiting]:
        _run(shlex.join(["rm", "-rf", *files]), host)


def _folder(script: Script) -> str:
    return f"{script.directory}/waiting"


def _run(script: str, host: Host) -> str:
    answer = host.run(script)
    if answer.exit_code:
        raise TargetError(f"cannot note or ask who waits for a task: {answer.stderr.strip()}")
    return answer.stdout
