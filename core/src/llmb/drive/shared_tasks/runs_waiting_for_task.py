"""Files on the target that note which runs wait for a shared task, so that every process knows.

A run whose process was killed still waits, because another process may resume it. At worst a task continues for no run.
"""

import shlex
from collections.abc import Iterable, Mapping

from llmb.files import resource_text
from llmb.values.errors import BusyError, TargetError
from llmb.values.host import Host
from llmb.values.job import Script

_LIST = """
list_waiting() { # task, folder: print the runs that wait for the task, after removing those in $over
  cd "$2" 2>/dev/null || return 0
  rm -f -- "${over[@]}" || exit 1
  for run in *; do [ ! -e "$run" ] || printf '%s\\t%s\\n' "$1" "$run"; done
}
"""


OF_ANOTHER_USER = 73
"""Exit code of ``check_owner``."""

_CHECK_OWNER = """
check_owner() { # directory...: fail if another user created one of them, and print how to create the item oneself
  local each user move
  for each; do
    if [ ! -e "$each" ] && [ ! -L "$each" ]; then
      [ ! -d "${each%/*}" ] || [ -w "${each%/*}" ] || ! explain_closed "${each%/*}" "${each%/*/*}/cache" || return 73
      continue
    fi
    if [ -L "$each" ] || [ ! -O "$each" ]; then
      user=$(stat -c %U -- "$each")
      move=$(printf '`mv -T %q %q`' "$each" "$each.$(date +%Y%m%d-%H%M%S)")
      if [ -e "$each/ended" ]; then
        echo "$each belongs to $user, whose job ended without creating this; if the scheduler will not start that" \
          "job again, move it away on $(uname -n): $move" >&2
      else
        echo "$each belongs to $user, who may be creating this for a run of the same kind; wait until it is complete," \
          "or if the job of $user has ended, move it away on $(uname -n): $move" >&2
      fi
      return 73
    fi
  done
}
"""
"""A job writes the file ``ended`` when it ends, even if it will start again. Its next start removes it."""


def add_references(waiting: Iterable[tuple[Script, str]], host: Host) -> None:
    """Note that runs wait for tasks: pairs of a task's script and a run's id. Raise TargetError."""
    files = [f"{_folder(script)}/{run_id}" for script, run_id in waiting]
    if files:
        folders = dict.fromkeys(file.rpartition("/")[0] for file in files)
        parents = [folder.rpartition("/")[0] for folder in folders]
        check, make = shlex.join(["check_owner", *parents]), shlex.join(["mkdir", "-p", *folders])
        protect = shlex.join(["chmod", "go-w", *parents, *folders])
        functions = resource_text("llmb.hosts", "work_directory.sh") + _CHECK_OWNER
        _run(f"{functions}\n{check} && {make} && {protect} && {shlex.join(['touch', *files])}", host)


def list_references(scripts: Iterable[Script], over: Iterable[str], host: Host) -> Mapping[str, list[str]]:
    """Remove the references of the runs in ``over``. Return the other runs that wait, by task. Raise TargetError."""
    calls = [shlex.join(["list_waiting", script.id, _folder(script)]) for script in scripts]
    waiting: dict[str, list[str]] = {}
    for line in _run("\n".join([f"over=({shlex.join(over)})", _LIST, *calls]), host).splitlines():
        key, _, run_id = line.partition("\t")
        waiting.setdefault(key, []).append(run_id)
    return waiting


def remove_references(waiting: Iterable[tuple[Script, str]], host: Host) -> None:
    """Remove these references. A pair with an empty run id removes all references to the task. Raise TargetError."""
    if files := [f"{_folder(script)}/{run_id}" for script, run_id in waiting]:
        _run(shlex.join(["rm", "-rf", *files]), host)


def _folder(script: Script) -> str:
    return f"{script.directory}/waiting"


def _run(script: str, host: Host) -> str:
    result = host.run(script)
    if result.exit_code:
        error = BusyError if result.exit_code == OF_ANOTHER_USER else TargetError
        raise error(f"cannot note which runs wait for a task: {result.stderr.strip()}")
    return result.stdout
