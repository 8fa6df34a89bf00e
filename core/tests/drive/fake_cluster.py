"""A cluster in memory: its scheduler, its file system, and the commands that llmb runs on its host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, evolve, field

from llmb.values.errors import BusyError, TargetError, UnknownOutcomeError, UnreachableError
from llmb.values.host import CommandResult
from llmb.values.job import Script
from llmb.values.job_history import JobHistory
from llmb.values.job_status import JobHandle, JobStatus

from .fake_process import Process

T = TypeVar("T")

READ_LIMIT = 10
"""Bytes of a log that one command reads, so that most reads end within a line."""


@define(kw_only=True)
class JobPlan:
    """Fate of the jobs of a unit. Times are ticks of the cluster."""

    queue: int = 1
    steps: int = 2
    end: str = "completed"
    refused: str = ""
    never: bool = False  # it waits for ever
    requeue_at: int = 0  # the first attempt is requeued at this step
    lost_once: bool = False  # a node fails under the first job
    lag: int = 0  # how long the scheduler does not know the end
    history_lag: int = 0  # how long accounting does not know the end


@define
class Job:
    """One submission."""

    number: str
    script: Script
    plan: JobPlan
    state: str = "pending"
    cause: str = ""
    attempt: int = 0
    age: int = 0
    steps: int = 0
    ended_for: int = 0


@define
class Cluster:
    """The jobs and files of a cluster, whichever process reaches it. ``plans`` are by the id of the unit."""

    plans: Mapping[str, JobPlan]
    jobs: list[Job] = field(factory=list)
    files: dict[str, bytes] = field(factory=dict)
    markers: dict[str, str] = field(factory=dict)  # the number of the last job of each id, or "" while submitting
    submitting: Process | None = None  # the process that holds the lock of submissions
    commands: list[str] = field(factory=list)

    def jobs_of(self, unit: str) -> list[Job]:
        return [job for job in self.jobs if job.script.id == unit]

    @property
    def secrets(self) -> list[str]:
        """The files of secrets that are left."""
        return [path for path in self.files if path.endswith("/.secrets")]

    def tick(self) -> None:
        for job in self.jobs:
            job.age += 1
            if job.state == "ended":
                job.ended_for += 1
            elif job.state == "pending" and job.age > job.plan.queue and not job.plan.never:
                self._start(job)
            elif job.state == "running":
                self._step(job)

    def _start(self, job: Job) -> None:
        job.state = "running"
        needed = f"{job.script.directory}/.secrets"
        assert not job.script.secrets or needed in self.files, f"{job.script.id} started without its secrets"

    def _step(self, job: Job) -> None:
        job.steps += 1
        for path in log_paths(job):
            self.files[path] = self.files.get(path, b"") + b"step %d\n" % job.steps
        if job.plan.lost_once and len(self.jobs_of(job.script.id)) == 1:
            self.end(job, "node failure")
        elif job.attempt == 0 and job.steps == job.plan.requeue_at:
            job.state, job.attempt, job.steps, job.age = "pending", 1, 0, 0
        elif job.steps >= job.plan.steps:
            if job.plan.end == "completed" and job.script.check:
                self.files[job.script.check.removeprefix("test -e ")] = b"complete"
            self.end(job, job.plan.end)

    def end(self, job: Job, cause: str) -> None:
        """End a job. One that ran removes its secrets."""
        if job.state == "running":
            self.files.pop(f"{job.script.directory}/.secrets", None)
        job.state, job.cause = "ended", cause

    def run_check(self, check: str) -> bool:
        return check.removeprefix("test -e ") in self.files


def log_paths(job: Job) -> list[str]:
    return [path.replace("{attempt}", str(job.attempt)) for paths in job.script.logs.values() for path in paths]


@define
class FakeTarget:
    """The cluster as one process reaches it. ``errors`` maps the number of a command to how it fails."""

    cluster: Cluster
    process: Process
    errors: Mapping[int, str] = field(factory=dict)
    calls: int = 0

    def call(self, name: str, act: Callable[[], T]) -> T:
        self.calls += 1
        error = self.errors.get(self.calls, "")
        self.process.pass_boundary(f"before {name}")
        self.cluster.commands.append(name)
        if error == "away":
            raise UnreachableError("no route to host")
        if error == "refused":
            raise TargetError("no space left on device")
        if error == "not done":
            raise UnknownOutcomeError("connection lost")
        result = act()
        self.process.pass_boundary(f"after {name}")
        if error:
            raise UnknownOutcomeError("connection lost")
        return result

    @property
    def scheduler(self) -> FakeScheduler:
        return FakeScheduler(self)


@define
class FakeScheduler:
    """The hooks of a scheduler's plugin. Detached processes of the host use them too."""

    target: FakeTarget
    poll_interval_s: tuple[float, float] = (0.0, 0.0)

    def parse_log(self, run: Any) -> None:
        """Return no parser: the scheduler writes no messages into logs."""

    def probe(self, target: Any) -> str:
        return ""

    def submit(self, scripts: Sequence[Script], host: Any) -> Mapping[str, JobHandle]:
        self.target.process.run_call()  # a thread records a run meanwhile
        return self.target.call("submit", lambda: self._submit_all(scripts))

    def _submit_all(self, scripts: Sequence[Script]) -> Mapping[str, JobHandle]:
        cluster, process = self.target.cluster, self.target.process
        holder = cluster.submitting
        if holder and not holder.dead and holder is not process:
            raise BusyError("another llmb has been submitting for 2 minutes")
        cluster.submitting = process
        try:
            return {script.id: self._submit(script) for script in scripts}
        finally:
            cluster.submitting = None

    def _submit(self, script: Script) -> JobHandle:
        """Submit a job unless there is one: a run's ever, a task's unless its check fails and the job is over."""
        cluster, process = self.target.cluster, self.target.process
        handle = JobHandle(id=script.id, directory=script.directory)
        if script.id in cluster.markers and (jobs := cluster.jobs_of(script.id)):
            job = jobs[-1]
            if not script.check or job.state != "ended" or cluster.run_check(script.check):
                cluster.markers[script.id] = job.number
                return evolve(handle, job_id=job.number)
        plan = cluster.plans[script.id]
        if plan.refused:
            return evolve(handle, refused=plan.refused, remedy="come back in the morning")
        cluster.markers[script.id] = ""
        process.pass_boundary(f"within submit: {script.id} marked")
        assert all(job.state == "ended" for job in cluster.jobs_of(script.id)), f"{script.id} has a twin"
        cluster.jobs.append(Job(str(len(cluster.jobs) + 1), script, plan))
        process.pass_boundary(f"within submit: {script.id} accepted")
        cluster.markers[script.id] = cluster.jobs[-1].number
        return evolve(handle, job_id=cluster.jobs[-1].number)

    def poll(self, handles: Sequence[JobHandle], host: Any) -> Mapping[str, JobStatus]:
        return self.target.call("poll", lambda: {each.id: self._status(each) for each in handles})

    def _status(self, handle: JobHandle) -> JobStatus:
        jobs = self.target.cluster.jobs_of(handle.id)
        if not jobs:
            return JobStatus(state="absent")
        job: Any = jobs[-1]
        if job.state == "ended" and job.ended_for < job.plan.lag:
            return JobStatus(state="unknown", job_id=job.number, attempt=job.attempt)
        cause = "impossible" if job.state == "pending" and job.plan.never else job.cause
        return JobStatus(state=job.state, job_id=job.number, cause=cause, attempt=job.attempt)

    def history(self, handles: Sequence[JobHandle], host: Any) -> Mapping[str, JobHistory]:
        return self.target.call("history", lambda: {each.id: self._history(each) for each in handles})

    def _history(self, handle: JobHandle) -> JobHistory:
        job = self.target.cluster.jobs_of(handle.id)[-1]
        return JobHistory(pending=job.ended_for < job.plan.history_lag)

    def cancel(self, handles: Sequence[JobHandle], host: Any) -> None:
        ids = {each.id for each in handles}

        def act() -> None:
            for job in self.target.cluster.jobs:
                if job.script.id in ids and job.state != "ended":
                    self.target.cluster.end(job, "cancelled")

        self.target.call("cancel", act)


@define
class FakeHost:
    """The host of the cluster. It interprets the few commands that llmb's core sends."""

    target: FakeTarget

    @property
    def scheduler(self) -> FakeScheduler:
        """The detached processes of the host, which are submitted and polled as jobs are."""
        return self.target.scheduler

    @property
    def files(self) -> dict[str, bytes]:
        return self.target.cluster.files

    def put(self, files: Mapping[str, str], *, mode: int = 0o644) -> None:
        assert mode == 0o600, "only secrets are put by the core"
        self.target.call("put", lambda: self.files.update({path: text.encode() for path, text in files.items()}))

    def read(self, offsets: Mapping[str, int]) -> Mapping[str, bytes]:
        def act() -> Mapping[str, bytes]:
            found = {path: self.files.get(path, b"")[offset:][:READ_LIMIT] for path, offset in offsets.items()}
            return {path: data for path, data in found.items() if data}

        return self.target.call("read", act)

    def run(self, script: str, *, timeout_s: float = 60.0) -> CommandResult:
        name, interpret = next((name, act) for word, name, act in self._commands() if word in script)
        return self.target.call(name, lambda: CommandResult(exit_code=0, stdout=interpret(script)))

    def _commands(self) -> Iterable[tuple[str, str, Callable[[str], str]]]:
        return (
            ("report_directory()", "check directories", lambda _script: ""),
            ("list_waiting()", "list references", self._list_references),
            ("newest()", "read a task's log", self._tail),
            ("then echo", "check", self._check),
            ("mkdir -p", "add references", self._touch),
            ("rm -rf", "remove references", self._remove),
            ("rm -f", "remove secrets", self._remove),
        )

    def _list_references(self, script: str) -> str:
        over = shlex.split(script.partition(")")[0].partition("(")[2])
        found = []
        for line in re.findall(r"^list_waiting (?!\()(.*)$", script, re.MULTILINE):
            key, folder = shlex.split(line)
            for run in over:
                self.files.pop(f"{folder}/{run}", None)
            found += [f"{key}\t{path.rpartition('/')[2]}\n" for path in self.files if path.startswith(f"{folder}/")]
        return "".join(found)

    def _tail(self, script: str) -> str:
        logs = [path for line in re.findall(r"^newest (.*)$", script, re.MULTILINE) for path in shlex.split(line)]
        log = next((path for path in reversed(logs) if self.files.get(path)), "")
        return f"{log}\n{self.files.get(log, b'').decode()}"

    def _check(self, script: str) -> str:
        checks = re.findall(r"if \((.*)\n\) >/dev/null 2>&1; then echo (.*); fi", script)
        return "".join(f"{key}\n" for check, key in checks if self.target.cluster.run_check(check))

    def _touch(self, script: str) -> str:
        for path in shlex.split(script.partition("&& touch ")[2]):
            self.files[path] = b""
        return ""

    def _remove(self, script: str) -> str:
        for name in shlex.split(script)[2:]:
            for path in [path for path in self.files if path == name or path.startswith(f"{name.rstrip('/')}/")]:
                del self.files[path]
        return ""
