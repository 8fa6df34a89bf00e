"""Runs ``llmb`` and kills it at a given moment: just before, just after or in the middle of one of its effects.

A server for tests: each line of standard input is a list of jobs, each line of standard output the list of how they
ended. All is imported once, and every job is a fork of that.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import threading
from pathlib import Path
from typing import Any

AT_ONCE = 4
DEADLINE_S = 60
SUBMITS = re.compile(r"^(submit|start) ", re.MULTILINE)
STAGES = ("preparing", "before the start", "after the start", "running", "finishing")


class Moments:
    """Counts the moments of each stage, and kills this process at one of them."""

    def __init__(self, stage: str, number: int) -> None:
        self.stage = "starting"
        self.seen: list[tuple[str, str]] = []
        self._wanted = (stage, number)
        self._count = dict.fromkeys(("starting", *STAGES), 0)

    def pass_by(self, name: str) -> None:
        if self.is_next(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def is_next(self, name: str) -> bool:
        self._count[self.stage] += 1
        self.seen.append((self.stage, name))
        return (self.stage, self._count[self.stage]) == self._wanted


def install(moments: Moments, host: Any, count_file: str) -> None:
    """Put a moment before and after every effect, and some within."""
    from llmb.drive.record import RunRecord

    die_within_run(host, moments, count_file)
    die_within_write(moments)
    for owner, name in (
        (RunRecord, "add_event"),
        (RunRecord, "append_log"),
        (RunRecord, "write_result"),
        (RunRecord, "try_lock"),
        (RunRecord, "unlock"),
        (host, "run"),
        (host, "put"),
        (host, "read"),
        (os, "replace"),
        (os, "fsync"),
    ):
        die_around(owner, name, moments)


def die_around(owner: Any, name: str, moments: Moments) -> None:
    """Just before, and just after."""
    original = getattr(owner, name)

    def traced(*arguments: Any, **more: Any) -> Any:
        if name == "write_result":
            moments.stage = "finishing"
        moments.pass_by(f"before {name}")
        answer = original(*arguments, **more)
        moments.stage = stage_after(moments.stage, name, arguments, more)
        moments.pass_by(f"after {name}")
        return answer

    setattr(owner, name, traced)


def stage_after(stage: str, name: str, arguments: tuple[Any, ...], more: dict[str, Any]) -> str:
    """Where a run is after an effect."""
    if name == "add_event":
        stages = {"planned": "preparing", "submitting": "before the start", "running": "running"}
        return stages.get(more.get("state", ""), stage)
    if name == "run" and stage == "before the start" and SUBMITS.search(arguments[1]):
        return "after the start"
    return stage


def die_within_run(host: Any, moments: Moments, count_file: str) -> None:
    """Bash kills this process and goes on, an orphan: at once, or when sbatch has just accepted a job."""
    run = host.run

    def run_or_die(self: Any, script: str, *more: Any, **named: Any) -> Any:
        within = f"kill -KILL {os.getpid()}\n" if moments.is_next("within run") else ""
        for number in range(1, 1 + script.count("\nstart ")):
            for victims in (f"{os.getpid()}", f"{os.getpid()} $$ $BASHPID"):  # this process alone, or bash too
                if moments.is_next(f"sbatch {number} accepted"):
                    within += SBATCH.format(file=shlex.quote(count_file), number=number, victims=victims)
        return run(self, within + script, *more, **named)

    host.run = run_or_die


SBATCH = """
sbatch() {{
  local status number=1 answer
  answer=$(command sbatch "$@")
  status=$?
  until mkdir {file}.$number; do ((number += 1)); done 2>/dev/null
  if [ $number = {number} ]; then kill -KILL {victims}; fi
  [ -z "$answer" ] || echo "$answer"
  return $status
}}
"""


def die_within_write(moments: Moments) -> None:
    """Half of it is written."""
    write = os.write

    def write_or_die(descriptor: int, data: Any) -> int:
        ours = threading.current_thread() is threading.main_thread()  # an SSH connection has a thread of its own
        if ours and moments.is_next("within write"):
            write(descriptor, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(descriptor, data)

    os.write = write_or_die


def start(job: dict[str, Any]) -> int:
    """Fork one ``llmb``."""
    if pid := os.fork():
        return pid
    signal.alarm(job.get("deadline_s", DEADLINE_S))
    os.environ.update(job["env"])
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{job['output']}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    from llmb.cli import main

    sys.argv = ["llmb", *job["arguments"]]
    moments = Moments(*job.get("kill", ("", 0)))
    if "kill" in job:
        install(moments, host_class(job), f"{job['output']}.sbatch")
    try:
        main.main()
    except SystemExit as end:
        sys.stdout.flush()
        Path(f"{job['output']}.moments").write_text(json.dumps(moments.seen))
        os._exit(int(end.code or 0))
    finally:
        os._exit(99)


def host_class(job: dict[str, Any]) -> Any:
    """That of this machine, or the one over SSH."""
    if job.get("ssh"):
        from llmb.hosts.ssh import SshHost

        return SshHost
    from llmb.hosts.local import LocalHost

    return LocalHost


def run_all(jobs: list[dict[str, Any]]) -> list[int]:
    """How each ended: its exit status, or minus the signal that killed it."""
    ends: dict[int, int] = {}
    waiting, running = dict(enumerate(jobs)), {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            number = next(iter(waiting))
            running[start(waiting.pop(number))] = number
        pid, status = os.wait()
        ends[running.pop(pid)] = os.waitstatus_to_exitcode(status)
    return [ends[number] for number in range(len(jobs))]


def main() -> None:
    """Serve."""
    import llmb_toy.plugin  # noqa: F401

    import llmb_slurm.script  # noqa: F401  # what a run imports, imported once

    for line in sys.stdin:
        sys.stdout.write(json.dumps(run_all(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
