"""Runs ``llmb`` and kills it at a given moment: just before, just after or in the middle of an effect.

The effects are those of the operating system: files that are created, written, synced, renamed, locked or removed,
processes, and SSH channels. Nothing here depends on how ``llmb`` is built. A run's stage is read from its record.

This is a server for tests: each line of standard input is a list of jobs, each line of standard output the list of
their exit codes. The server imports everything once. Each job is a fork of the server.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from parts.deadline import DEADLINE_S

JOBS_TOGETHER = 4
STAGES = ("preparing", "before the start", "after the start", "running", "finishing")
STAGE_OF_STATE = {
    "planned": "preparing",
    "preparing": "preparing",
    "submitting": "before the start",
    "queued": "after the start",
    "running": "running",
}
RESULT_FILES = ("steps.csv", "result.json")  # whose first sign is the beginning of the last stage
WRITING_MODES = set("wax+")

# Bash that waits until it has its script, kills ``llmb`` and continues alone: file for the script, process, command.
ORPHAN = 'cat >"$1"; kill -KILL "$2"; exec "${@:3}" <"$1"'


class Moments:
    """Counts the moments of each stage, and kills this process at one of them."""

    def __init__(self, stage: str, number: int, runs: Path) -> None:
        self.stage = "starting"
        self.seen: list[tuple[str, str]] = []
        self._wanted = (stage, number)
        self._count = dict.fromkeys(("starting", *STAGES), 0)
        self._lock = threading.RLock()
        self._runs = runs
        self._read: dict[Path, int] = {}
        for _ in self._new_states():
            continue  # what another process recorded is no stage of this one

    def pass_by(self, name: str) -> None:
        """Count a moment, and kill this process if it is the wanted one."""
        if self.is_wanted(name):
            os.kill(os.getpid(), signal.SIGKILL)

    def is_wanted(self, name: str) -> bool:
        """Count a moment. Return True if this process shall be killed there."""
        if type(threading.current_thread()).__module__.startswith("paramiko"):  # its pipes to this process's threads
            return False
        with self._lock:
            for state in self._new_states():
                self.stage = STAGE_OF_STATE.get(state, self.stage)
            self._count[self.stage] += 1
            self.seen.append((self.stage, name))
            return (self.stage, self._count[self.stage]) == self._wanted

    def notice(self, files: list[object]) -> None:
        """Begin the last stage if one of these is a file of the result."""
        if any(name in os.path.basename(name_of(file)) for name in RESULT_FILES for file in files):
            self.stage = "finishing"

    def _new_states(self) -> Iterator[str]:
        """Yield the states that were recorded since the last call."""
        for file in self._runs.glob("*/events.jsonl"):
            data = file.read_bytes()[self._read.get(file, 0) :]
            whole_lines = data[: data.rfind(b"\n") + 1]
            self._read[file] = self._read.get(file, 0) + len(whole_lines)
            for line in whole_lines.splitlines():
                with suppress(ValueError):
                    yield json.loads(line).get("state", "")


def install(moments: Moments, output: str) -> None:
    """Put a moment before and after every effect, and some within."""
    for owner, name in ((os, "fsync"), (os, "fdatasync"), (os, "replace"), (os, "rename"), (fcntl, "flock")):
        die_around(owner, name, moments)
    for owner, name in ((os, "unlink"), (os, "mkdir"), (os, "ftruncate")):
        die_around(owner, name, moments)
    die_around(os, "open", moments, lambda _file, flags, *_, **__: bool(flags & os.O_CREAT))
    die_around(os, "close", moments, lambda descriptor: name_of(descriptor).startswith("/"))
    die_around(io, "open", moments, writes)
    die_within_write(moments)
    die_around_processes(moments, output)


def die_around(owner: Any, name: str, moments: Moments, has_effect: Callable[..., bool] = lambda *_: True) -> None:
    """Put a moment before and after the calls of a function that have an effect."""
    original = getattr(owner, name)

    def traced(*arguments: Any, **more: Any) -> Any:
        if not has_effect(*arguments, **more):
            return original(*arguments, **more)
        moments.notice([arguments[0], *(each for each in arguments[1:] if not isinstance(each, int))])
        moments.pass_by(f"before {name}")
        answer = original(*arguments, **more)
        moments.pass_by(f"after {name}")
        return answer

    setattr(owner, name, traced)


def writes(file: object, mode: str = "r", *_: object, **__: object) -> bool:
    """Check whether ``open`` with these arguments creates or changes a file."""
    return not isinstance(file, int) and bool(WRITING_MODES & set(mode))


def name_of(file: object) -> str:
    """Return the path of a file or of a descriptor."""
    if isinstance(file, int):
        with suppress(OSError):
            return os.readlink(f"/proc/self/fd/{file}")
    return str(file)


def die_within_write(moments: Moments) -> None:
    """Put a moment before a write, and one in its middle."""
    write = os.write

    def write_or_die(descriptor: int, data: Any) -> int:
        moments.pass_by("before write")
        if moments.is_wanted("within write"):
            write(descriptor, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(descriptor, data)

    os.write = write_or_die


def die_around_processes(moments: Moments, output: str) -> None:
    """Put moments before the start, after the start and after the end of a process, and one within bash."""
    start, wait = subprocess.Popen.__init__, subprocess.Popen.wait
    ended: set[int] = set()

    def start_or_die(self: Any, command: Any, *more: Any, **named: Any) -> None:
        moments.pass_by("before Popen")
        if command[0] == "bash" and named.get("stdin") == subprocess.PIPE and moments.is_wanted("within bash"):
            command = ["bash", "-c", ORPHAN, "bash", f"{output}.script", str(os.getpid()), *command]
        start(self, command, *more, **named)
        moments.pass_by("after Popen")

    def wait_or_die(self: Any, *more: Any, **named: Any) -> int:
        status = wait(self, *more, **named)
        if self.pid not in ended:
            ended.add(self.pid)
            moments.pass_by("process ended")
        return status

    subprocess.Popen.__init__ = start_or_die  # type: ignore[method-assign]
    subprocess.Popen.wait = wait_or_die  # type: ignore[method-assign]


def die_around_channels(moments: Moments) -> None:
    """Put moments before, in the middle of and after what is sent over SSH, and one at the first bytes of an answer."""
    from paramiko import Channel

    send, receive = Channel.send, Channel.recv
    waiting: set[int] = set()

    def send_or_die(self: Any, data: Any) -> int:
        moments.pass_by("before send")
        if moments.is_wanted("within send"):
            send(self, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        sent = send(self, data)
        waiting.add(self.chanid)
        moments.pass_by("after send")
        return sent

    def receive_or_die(self: Any, size: int) -> bytes:
        data = receive(self, size)
        if self.chanid in waiting:
            waiting.discard(self.chanid)
            moments.pass_by("answered")
        return data

    Channel.send, Channel.recv = send_or_die, receive_or_die


def start(job: dict[str, Any]) -> int:
    """Fork one ``llmb``."""
    if pid := os.fork():
        return pid
    signal.alarm(DEADLINE_S)
    os.environ.update(job["env"])
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{job['output']}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.argv = ["llmb", *job["arguments"]]
    Path(f"{job['output']}.pid").write_text(str(os.getpid()))
    stage, number = job.get("kill", ("", 0))
    moments = Moments(stage, number, Path(job["env"]["LLMB_HOME"], "runs"))
    if "kill" in job:
        if job.get("ssh"):
            die_around_channels(moments)
        install(moments, job["output"])
    try:
        command_line()()
    except SystemExit as end:
        sys.stdout.flush()
        note_end(job["output"], moments)
        os._exit(int(end.code or 0))
    finally:
        os._exit(99)


def command_line() -> Callable[[], object]:
    """Return the function that the command ``llmb`` calls."""
    [entry] = entry_points(group="console_scripts", name="llmb")
    return entry.load()


def note_end(output: str, moments: Moments) -> None:
    """Write which moments a job had, and what it imported."""
    imported = [name for name in sys.modules if not name.startswith("__")]
    for name, content in (("moments", list(moments.seen)), ("modules", imported)):
        Path(f"{output}.{name}").write_text(json.dumps(content))


def run_all(jobs: list[dict[str, Any]]) -> list[int]:
    """Run the jobs. Return for each the exit code, or minus the signal that killed it."""
    ends: dict[int, int] = {}
    running: dict[int, int] = {}
    waiting = dict(enumerate(jobs))
    while waiting or running:
        while waiting and len(running) < JOBS_TOGETHER:
            number = next(iter(waiting))
            running[start(waiting.pop(number))] = number
        pid, status = os.wait()
        ends[running.pop(pid)] = os.waitstatus_to_exitcode(status)
    return [ends[number] for number in range(len(jobs))]


def import_what_was_imported(jobs: list[dict[str, Any]]) -> None:
    """Import what these jobs imported, so that later jobs need not."""
    for job in jobs:
        file = Path(f"{job['output']}.modules")
        for name in json.loads(file.read_text()) if file.exists() else ():
            if name not in sys.modules:
                with suppress(ImportError):
                    import_module(name)


def main() -> None:
    """Serve."""
    command_line()
    for line in sys.stdin:
        jobs = json.loads(line)
        sys.stdout.write(json.dumps(run_all(jobs)) + "\n")
        sys.stdout.flush()
        import_what_was_imported(jobs)


if __name__ == "__main__":
    main()
