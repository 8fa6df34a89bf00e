"""A home, a cluster and the runs that a user wants: everything around the driving core, simulated."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import Factory, define, evolve, field

from llmb.drive.finalize.write_result import EndedJob
from llmb.drive.max_jobs import JobLimit
from llmb.drive.session import Session
from llmb.drive.session_run import SessionRun
from llmb.drive.submit_in_batches import Background
from llmb.drive.target_group import TargetGroup
from llmb.drive.target_loop import TargetLoop
from llmb.paths import runs_folder
from llmb.plan_runs import RunPlan
from llmb.plan_shared_tasks import TaskPlan
from llmb.records.create_records import SweepRecorder
from llmb.records.find_record_by_id import all_records
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import TASK_LOG, RunRecord
from llmb.state_machine.events import Ended, Event, Planned
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job as NeutralJob
from llmb.values.job import Phase, Script, Task

from .fake_cluster import Cluster, FakeHost, FakeTarget, JobPlan, log_paths
from .fake_process import Disk, Process

MAX_TICKS = 60
TOKEN = "FAKE_TOKEN"
SECRET = "very-secret"
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # in memory
STATES = {"completed": "completed", "cancelled": "cancelled", "timeout": "timeout", "lost": "lost"}
PHASE = Phase(name="job", command=("train",))
JOB = NeutralJob(id="a", directory="/work", phases=(PHASE,), nodes=1, tasks_per_node=1, gpus_per_node=0, time_limit_s=1)
TARGET: Any = SimpleNamespace(workdir="/work", shared=False, host="cluster", gpu_types=(), uses_images=False)


@define(kw_only=True)
class Scenario:
    """The runs of a sweep, the tasks that they need, what happens to their jobs, and how they may end.

    ``jobs`` is how many jobs a unit may have had; 1 if not given. ``cancels`` maps a tick of the cluster to the runs
    that the user cancels then. ``secret`` names the units that need a secret. At most ``max_jobs`` runs have a job.
    """

    plans: Callable[[], dict[str, JobPlan]]
    needs: Mapping[str, tuple[str, ...]]
    ends: Mapping[str, str]
    jobs: Mapping[str, Collection[int]] = field(factory=dict)
    cancels: Mapping[int, list[str]] = field(factory=dict)
    secret: tuple[str, ...] = ()
    on_host: tuple[str, ...] = ()
    max_jobs: int | None = None
    concurrent: tuple[str, ...] = ()
    detach: bool = False

    def run_plan(self, run_id: str) -> RunPlan:
        steps = self.plans()[run_id].steps
        run: Any = SimpleNamespace(id=run_id, name=run_id, steps=steps, framework="toy", recipe="toy/tiny")
        return RunPlan(
            spec=SimpleNamespace(run=run, target=TARGET),  # type: ignore[arg-type]  # enough of a run for the core
            job=JOB,
            script=self._script(run_id, f"/work/runs/{run_id}"),
            tasks=tuple(map(self._task_plan, self.needs[run_id])),
        )

    def _task_plan(self, key: str) -> TaskPlan:
        script = self._script(key, f"/work/cache/jobs/{key}", check=f"test -e /work/cache/{key}")
        task = Task(key=key, kind=f"import of {key}", work=":", check=script.check, concurrent=key in self.concurrent)
        return TaskPlan(task=task, script=script, on="host" if key in self.on_host else "scheduler")

    def _script(self, unit: str, directory: str, check: str = "") -> Script:
        secrets = (TOKEN,) if unit in self.secret else ()
        logs = FrozenMap({"job": (f"{directory}/{unit}.{{attempt}}.log",)})
        return Script(id=unit, directory=directory, text="#!/bin/bash\n", logs=logs, secrets=secrets, check=check)


@define(eq=False)
class World:
    """One simulation of a scenario."""

    scenario: Scenario
    disk: Disk
    cluster: Cluster = Factory(lambda self: Cluster(self.scenario.plans()), takes_self=True)
    home: Path = Factory(lambda: Path(tempfile.mkdtemp(dir=FOLDER, prefix="llmb-world-")))
    ticks: int = 0
    events: list[Event] = field(factory=list)
    meanwhile: Callable[[], None] = lambda: None  # what other processes do between two polls
    lost_requests: set[str] = field(factory=set)  # runs whose cancelling a power failure undid
    finished: bool = False  # all runs ended
    tasks_may_continue: bool = False  # a target that does not respond does not prevent cancelling
    plans: dict[str, RunPlan] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.plans = {run_id: self.scenario.run_plan(run_id) for run_id in self.scenario.needs}

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_exception: object) -> None:
        shutil.rmtree(self.home)

    # One process

    def session(self, process: Process, errors: Mapping[int, str] | None = None) -> Session:
        """Start the runs, or attach to them if they are recorded."""
        recorder = None
        if records := all_records():
            records = [record for record in sorted(records, key=lambda each: each.run_id) if not record.ended]
        else:
            records = [RunRecord(runs_folder() / run_id, {"workload": {}}) for run_id in self.plans]
            recorder = SweepRecorder(dict.fromkeys(records, "#!/bin/bash\n"))
        target = FakeTarget(self.cluster, process, errors or {})
        group = TargetGroup(target.scheduler, FakeHost(target), [TARGET])  # type: ignore[arg-type]  # a fake
        runs = [self._driven(record, target) for record in records]
        loop = TargetLoop(group, runs, None, recorder)  # type: ignore[arg-type]  # no plugin is used
        hosts: Any = SimpleNamespace(close=lambda: None)
        return Session(records, [loop], hosts, recorder=recorder)

    def _driven(self, record: RunRecord, target: FakeTarget) -> SessionRun:
        plan = self.plans[record.run_id]
        framework: Any = SimpleNamespace(parse_log=lambda run: Unparsed())
        logs = LogCopies(plan, record, framework, target.scheduler)  # type: ignore[arg-type]
        limit = JobLimit("a", self.scenario.max_jobs) if self.scenario.max_jobs else None
        return SessionRun(plan, record, logs, limit)

    def drive(self, process: Process, errors: Mapping[int, str] | None = None) -> None:
        """Let one process drive the runs to their end, or until it is killed. One that detaches attaches again."""
        with self.disk.running(process, self.home):
            if self.scenario.detach:
                with self.session(process, errors) as session:
                    self.events += session.events(until="submitted", sleep=self.wait)
            with self.session(process, errors) as session:
                self.events += session.events(sleep=self.wait)
            assert not process.locks, "a session that is over holds locks"
            [loop] = session._loops
            for run_id, run in loop.units.runs.items():
                replayed, believed = run.record.state(), loop.units.states[run_id]
                assert evolve(replayed, cancel_requested_ns=0) == evolve(believed, cancel_requested_ns=0)

    def wait(self, _pause_s: float = 0) -> None:
        """Let the time pass between two polls."""
        self.ticks += 1
        assert self.ticks < MAX_TICKS, "it never ends"
        jobs = [job for job in self.cluster.jobs if job.state != "ended" and not job.script.check]
        assert not self.scenario.max_jobs or len(jobs) <= self.scenario.max_jobs, "more jobs than the limit"
        self.cluster.tick()
        for run_id in self.scenario.cancels.get(self.ticks, ()):
            self.request_cancel(run_id)
        if self.disk.process:
            self.disk.process.run_call()
        self.meanwhile()

    def record(self, run_id: str) -> RunRecord:
        return RunRecord(self.home / "runs" / run_id)

    def request_cancel(self, run_id: str) -> None:
        """Cancel a run as another process does. A run that is not recorded yet has no id that a user knows."""
        if self.record(run_id).complete:
            self.record(run_id).request_cancel()

    def fail_power(self, keep: float) -> None:
        requested = {run_id for run_id in self.plans if self.record(run_id).cancel_requested_ns}
        self.disk.fail_power(self.home, keep)
        self.lost_requests |= {run_id for run_id in requested if not self.record(run_id).cancel_requested_ns}

    @property
    def recorded(self) -> bool:
        """True if another process finds the runs."""
        return bool(list(self.home.glob("runs/*/run.toml")))

    @property
    def ended(self) -> bool:
        return all(self.record(run_id).ended for run_id in self.plans)

    def finish(self) -> None:
        """Let one process after the other drive the runs until they ended."""
        for _ in range(20):
            self.finished = self.ended
            if self.finished:
                return
            self.drive(Process())
        raise AssertionError("the runs do not end")

    # What must be true at the end

    def problems(self) -> list[str]:
        """Return what is wrong at the end of the simulation."""
        cluster, allowed = self.cluster, self.scenario.jobs
        if self.lost_requests:  # runs may continue, and tasks may be created again for them
            allowed = {unit: {0, 1, 2} for unit in cluster.plans}
        counts = {unit: len(cluster.jobs_of(unit)) for unit in cluster.plans}
        found = [f"{unit} had {count} jobs" for unit, count in counts.items() if count not in allowed.get(unit, {1})]
        while self.tasks_may_continue and any(job.script.check and job.state != "ended" for job in cluster.jobs):
            cluster.tick()
        found += [f"nobody follows {job}" for job in cluster.jobs if job.state != "ended"]
        found += [f"the secret {secret} is left" for secret in cluster.secrets]
        for run_id, ends in self.scenario.ends.items():
            possible = [*ends.split("|"), *(["completed"] if run_id in self.lost_requests else [])]
            found += [f"{run_id}: {problem}" for problem in self._problems_of(run_id, possible)]
        files = [path for path in self.home.rglob("*") if not path.is_dir()]
        found += [f"{path} contains a secret" for path in files if SECRET.encode() in path.read_bytes()]
        found += [f"{path} is left" for path in self.home.glob("recording/*.json")]
        with self.disk.running(Process(), self.home):
            count = len(all_records())
        return [*found, *([] if count == len(self.plans) else [f"there are {count} records"])]

    def _problems_of(self, run_id: str, ends: list[str]) -> Iterator[str]:
        record = self.record(run_id)
        state, events = record.state(), [type(event) for event in record.events()]
        limited = self.scenario.max_jobs and self.scenario.needs[run_id]  # planned again once its tasks are complete
        if (events.count(Planned) != 1 and not limited) or events.count(Ended) != 1:
            yield f"not planned and ended exactly once: {events}"
        if state.run_state not in ends:
            yield f"not {ends}: {state}"
        yield from self._problems_of_job(record) if self.cluster.jobs_of(run_id) else self._problems_without_job(record)
        other = RunRecord(record.directory)
        if not other.try_lock():
            yield "it is locked"
        other.unlock()

    def _problems_of_job(self, record: RunRecord) -> Iterator[str]:
        job, state = self.cluster.jobs_of(record.run_id)[-1], record.state()
        truth = "failed" if job.plan.never else STATES.get(job.cause, "failed")
        if state.run_state != truth:
            yield f"{truth} in truth: {state}, {job}"
        for path in log_paths(job):
            copy = record.logs / path.rpartition("/")[2]
            if (copy.read_bytes() if copy.exists() else b"") != self.cluster.files.get(path, b""):
                yield f"{copy} does not contain each byte of the log once"

    def _problems_without_job(self, record: RunRecord) -> Iterator[str]:
        state = record.state()
        if state.run_state not in ("failed", "cancelled"):
            yield f"{state} without a job"
        ran = [key for key in self.scenario.needs[record.run_id] if self.cluster.jobs_of(key)]
        task_failed = any(self.cluster.plans[key].end == "failed" for key in ran) and state.run_state == "failed"
        if task_failed and not (record.logs / TASK_LOG).read_bytes().startswith(b"step 1"):
            yield "the log of the task is lost"


class Later:
    """A call in the background, which is made as late as possible if it may have a thread."""

    def __init__(self, act: Callable[[], Any], *, threaded: bool) -> None:
        self.result = act
        if not threaded:
            background = Background(act, threaded=False)
            self.result = background.result

    def wait(self) -> None:
        """Make the call, as Ctrl-C waits for a thread."""
        with suppress(Exception):
            self.result()


class Unparsed:
    """A parser that finds nothing."""

    first_step = None
    end_texts = ()

    def feed(self, data: bytes, source: str = "") -> tuple[()]:
        return ()

    def close(self) -> tuple[()]:
        return ()


def replace_what_is_not_simulated(patch: pytest.MonkeyPatch) -> None:
    """Replace the rules of ends, and the scripts of detached processes, which have tests of their own."""
    patch.setenv(TOKEN, SECRET)
    patch.setattr("llmb.records.create_records.FIRST_RECORDS", 3)
    patch.setattr("llmb.drive.submit_in_batches.MORE_RECORDS", 2)
    patch.setattr("llmb.drive.target_loop.FIRST_BATCH", 2)
    patch.setattr("llmb.drive.submit_in_batches.Background", Later)
    patch.setattr("llmb.drive.finalize.finalize_runs.write_result", write_result)
    tasks = "llmb.drive.shared_tasks"
    patch.setattr(f"{tasks}.task_effects.submit_detached", lambda scripts, host: host.scheduler.submit(scripts, host))
    patch.setattr(f"{tasks}.task_jobs.cancel_detached", lambda handles, host: host.scheduler.cancel(handles, host))
    patch.setattr(f"{tasks}.task_jobs.poll_detached", lambda handles, host: host.scheduler.poll(handles, host))


def write_result(plan: RunPlan, record: RunRecord, logs: LogCopies, job: EndedJob, registry: object) -> Ended:
    """Write a result and end as the scheduler reports. The rules of real runs have tests of their own."""
    logs.close()
    status = job.status
    state: Any = STATES.get(status.cause, "failed")
    record.write_result({"reason": status.reason}, [])
    return Ended(run_id=plan.run.id, state=state, reason=status.reason)
