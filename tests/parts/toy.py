"""Runs of the toy framework on this machine, on Slurm or in containers, each with its own home and journal."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w
from parts.deadline import DEADLINE_S, wait_until
from parts.forked import Started, run_llmb
from parts.slurm import Cluster

from llmb import FrozenMap

TOY = Path(__file__).parents[1] / "toy"
LOCAL_LIKE = ("choosy", "detached", "faulty")  # schedulers of the toy
PYTHONPATH = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
TINY_IMAGE = "llmb-tiny:1"


class ToyRuns:
    """Runs of the toy framework in a folder: ``home`` is $LLMB_HOME, ``journal`` lists what ran."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.home = folder / "home"
        self.journal_file = folder / "journal"
        self.gate = folder / "gate"
        self.task_gate = folder / "task-gate"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "LLMB_HOME": str(self.home), "PYTHONPATH": os.pathsep.join([str(TOY), *PYTHONPATH])}

    def spec(self, name: str = "toy", **tables: dict[str, Any]) -> str:
        """Write a spec. ``tables`` are merged into the usual tables."""
        own = {"lock": str(self.folder / "machine.lock"), "grace_s": 1}  # not the lock of the user who runs the tests
        named = tables.get("target", {}).get("scheduler")
        usual: dict[str, dict[str, Any]] = {
            "workload": {"recipe": "toy/tiny", "gpu_type": "h100", "dtype": "bf16", "gpus": 1},
            "framework": {"journal": str(self.journal_file)},
            "target": {"scheduler": "local", **own} if named in (None, *LOCAL_LIKE) else {},
        }
        for table, keys in tables.items():
            usual[table] = usual.get(table, {}) | keys
        file = self.folder / f"{name}.toml"
        file.write_text(tomli_w.dumps(usual))
        return str(file)

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "llmb", *arguments]

    def start(self, *arguments: str, env: Mapping[str, str] = FrozenMap(), start_new_session: bool = False) -> Started:
        """Start ``llmb`` as a process of its own."""
        return Started(arguments, env={**self.env, **env}, start_new_session=start_new_session)

    def llmb(self, *arguments: str, env: Mapping[str, str] = FrozenMap()) -> subprocess.CompletedProcess[str]:
        """Run ``llmb`` to its end."""
        return run_llmb(arguments, env={**self.env, **env})

    def runs(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the runs that a command prints with ``--json``."""
        return printed_runs(self.llmb(*arguments, "--json"))

    def run(self, **tables: dict[str, Any]) -> dict[str, Any]:
        """Run one run of the toy with the library, in this process."""
        import llmb

        [result] = llmb.run(llmb.load(self.spec(**tables)))
        return result.as_dict()

    def record(self, name: str = "toy", **tables: dict[str, Any]) -> str:
        """Record a run that no process drives yet. Return its id."""
        import llmb

        with llmb.start(llmb.load(self.spec(name, **tables))) as session:
            [run_id] = session.run_ids
        return run_id

    def append_event(self, run_id: str, **event: Any) -> None:
        """Add an event to a record, as a process that was killed then."""
        with (self.home / "runs" / run_id / "events.jsonl").open("a") as file:
            file.write(json.dumps({"time": round(time.time(), 3), **event}) + "\n")

    def forget_events(self, run_id: str, *, after: str) -> None:
        """Remove from a record what came after a state, as if ``llmb`` had been killed before it recorded that."""
        file = self.home / "runs" / run_id / "events.jsonl"
        head, state, _ = file.read_text().partition(f'"state": "{after}"')
        assert state
        file.write_text(head + state + "}\n")

    @property
    def records(self) -> list[Path]:
        return sorted((self.home / "runs").glob("*"))

    def work(self, run_id: str) -> Path:
        """Return the directory of a run's job."""
        return self.home / "work" / "runs" / run_id

    def journal(self, word: str = "") -> list[str]:
        """Return the lines of the journal that begin with this word, in order."""
        lines = self.journal_file.read_text().splitlines() if self.journal_file.exists() else []
        return [line for line in lines if line.startswith(word)]

    @staticmethod
    def wait_for_message(process: Started, words: str) -> str:
        """Return the first line with these words in a process's standard error. Kill the process at the deadline."""
        deadline = threading.Timer(DEADLINE_S, process.kill)
        deadline.start()
        try:
            for line in process.stderr or ():
                if words in line:
                    return line
        finally:
            deadline.cancel()
        raise AssertionError(f"it did not print {words!r}")

    @staticmethod
    def wait(condition: Callable[[], Any]) -> Any:
        """Wait until a condition is true, and return its value."""
        return wait_until(condition)

    @staticmethod
    def steps_of(record: Path) -> list[int]:
        """Return the step numbers in a record's steps.csv."""
        return [int(row["step"]) for row in csv.DictReader((record / "steps.csv").read_text().splitlines())]

    def wait_for_journal(self, word: str, count: int = 1) -> list[str]:
        return list(wait_until(lambda: len(lines := self.journal(word)) >= count and lines, f"{count} x {word}"))

    def wait_for_state(self, state: str) -> str:
        """Wait until a run is in this state, and return its id."""

        def find() -> str | None:
            for record in self.records:
                if f'"state": "{state}"' in _text(record / "events.jsonl"):
                    return record.name
            return None

        return str(wait_until(find, state))


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def await_run(process: Started) -> dict[str, Any]:
    """Wait for the end of a process that `ToyRuns.start` returned. Return the run that it prints with ``--json``."""
    out, err = process.communicate(timeout=DEADLINE_S)
    assert out, err
    [run] = json.loads(out)["runs"]
    return dict(run)


def printed_runs(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Return the runs in the output of ``llmb ... --json``."""
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return list(json.loads(done.stdout)["runs"])


def supervisor_of(work: Path) -> int:
    """Return the process that supervises the local job in a directory."""
    return int((work / "started").read_text().split()[0])


def job_script_of(work: Path) -> int:
    """Return the process of a local job's script, the oldest child of its supervisor. Process ids have no order."""
    supervisor = supervisor_of(work)
    return int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])


class SlurmRuns(ToyRuns):
    """Runs of the toy framework on a Slurm cluster."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.workdir = folder / "shared"

    def spec(self, name: str = "toy", **tables: dict[str, Any]) -> str:
        target = {"scheduler": "slurm", "workdir": str(self.workdir), "exclusive": False, "mem": "200M"}
        return super().spec(name, **{**tables, "target": target | tables.get("target", {})})

    def work(self, run_id: str) -> Path:
        return self.workdir / "runs" / run_id

    def follow(self, *steps: tuple[Callable[[], Any], Callable[[], Any]], **tables: dict[str, Any]) -> dict[str, Any]:
        """Run one run with the library. Each step is a condition to wait for, and what to do then."""
        import llmb

        return self.drive(llmb.start(llmb.load(self.spec(**tables))), *steps)

    def drive(self, session: Any, *steps: tuple[Callable[[], Any], Callable[[], Any]]) -> dict[str, Any]:
        """Follow the one run of a session to its end, before the deadline."""
        waiting = list(steps)
        end = time.monotonic() + DEADLINE_S

        def wait(_seconds: float) -> None:
            assert time.monotonic() < end, f"the run does not end: {session.results}"
            if waiting and waiting[0][0]():
                waiting.pop(0)[1]()
            time.sleep(0.1)

        session.wait(sleep=wait)
        assert not waiting
        [result] = session.results
        return dict(result.as_dict())

    def is_at_gate(self, attempt: int = 0) -> bool:
        """Check whether an attempt waits at the gate after its second step."""
        logs = self.workdir.glob(f"runs/*/logs/train.{attempt}.log")
        return any("toy step 2" in log.read_text() for log in logs)

    def job_id(self) -> str:
        """Return the job id of the one run, from its directory on the target."""
        return (next(self.workdir.glob("runs/*/job_id"))).read_text().strip()

    def state_of(self, job_id: str) -> str:
        """Return the state of a job in the queue."""
        return self.cluster.order("squeue", "-h", "-j", job_id, "-o", "%T").strip()

    def jobs(self) -> dict[str, list[str]]:
        """Return the ids of all jobs in the queue, by job name."""
        found: dict[str, list[str]] = {}
        for line in self.cluster.order("squeue", "-a", "-h", "-t", "all", "-o", "%j %i").splitlines():
            name, job_id = line.split()
            found.setdefault(name, []).append(job_id)
        return found


def gated(toy: ToyRuns, **options: Any) -> dict[str, Any]:
    """Return options of a training that waits after its second step."""
    return {"gate": str(toy.gate), "gate_step": 2, **options}


def at_gate(toy: SlurmRuns, action: Callable[[], Any], attempt: int = 0) -> tuple[Callable[[], bool], Any]:
    """Return a step for `SlurmRuns.follow`: call ``action`` once an attempt waits at the gate."""
    return lambda: toy.is_at_gate(attempt), action


class ContainerRuns(ToyRuns):
    """Runs of the toy framework in containers, in which the toy's folder is mounted."""

    def __init__(self, folder: Path, image: str) -> None:
        super().__init__(folder)
        self.image = image

    def spec(self, name: str = "toy", **tables: dict[str, Any]) -> str:
        usual = {
            "workload": {"image": self.image},
            "target": {"container": {"ulimits": {}}},  # this machine cannot raise them
            "mounts": {str(self.folder): str(self.folder)},
        }
        return super().spec(name, **{**tables, **{name: keys | tables.get(name, {}) for name, keys in usual.items()}})


def process_ids() -> set[str]:
    """Return the ids of all processes of this machine."""
    return set(filter(str.isdigit, os.listdir("/proc")))


def end_processes_in(folder: Path, *, older: set[str]) -> None:
    """Kill all processes below a test's folder. A failed test may leave processes that wait forever.

    The end of one job starts the next one, so repeat this until no process is left.
    """
    while [process for process in process_ids() - older if _kill_below(folder, process)]:
        continue


def _kill_below(folder: Path, process: str) -> bool:
    """Kill a process if it works below a folder. Return False if it does not, or has ended."""
    with suppress(OSError):  # the process has just ended
        if Path(f"/proc/{process}/cwd").readlink().is_relative_to(folder):
            os.kill(int(process), signal.SIGKILL)
            return True
    return False
