"""One scheduler on one host: where the units of many runs are checked, submitted and asked for together."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from llmb.drive.secrets import (
    certainly_refused,
    forget_secrets,
    missing_secrets,
    place_secrets,
    refuse_missing_secrets,
)
from llmb.drive.task_failure import describe_task_failure
from llmb.drive.task_progress import TaskProgress
from llmb.drive.task_references import add_references, drop_references, list_references
from llmb.hookspecs import Host, SchedulerHooks
from llmb.hosts.detached import cancel_detached, poll_detached, submit_detached
from llmb.hosts.disk_space import free_space_gb
from llmb.planning import TaskPlan
from llmb.values.errors import LlmbError, TargetError
from llmb.values.frozen import FrozenMap
from llmb.values.job import Script
from llmb.values.job_status import JobHandle, JobStatus
from llmb.values.run import Target


class Site:
    """Runs go through ``submit`` and ``poll``; the tasks before them are brought forward by ``look`` and ``make``.

    The targets of these runs may differ in their options: each has what its own probe finds. A task's check alone tells
    whether it is done: its record may be old, its exit status a lie. ``refusal`` is why the site could not be asked at
    all, where runs of others were to go on nevertheless.
    """

    def __init__(self, scheduler: SchedulerHooks[Any], host: Host, targets: Sequence[Target[Any]]) -> None:
        self.scheduler = scheduler
        self.host = host
        self.host_name, self.workdir = targets[0].host, targets[0].workdir
        self.refusal: Exception | None = None
        self._targets = targets
        self._gpu_types = tuple(dict.fromkeys(name for target in targets for name in target.gpu_types))
        self._images = any(target.images for target in targets)
        self._facts: dict[str, Mapping[str, str]] = {}  # by the probe that found them
        self._tasks: dict[str, TaskProgress] = {}
        self._waiting: set[tuple[str, str]] = set()  # task and run, as noted on the host
        self._seen: Mapping[str, JobStatus] = {}

    def probe(self) -> tuple[str, ...]:
        """Find the facts of all targets, each probe asked once; what could not be found is a line for people.

        Raises TargetError where the site cannot be asked.
        """
        told = []
        for script in filter(None, dict.fromkeys(map(self._probe_of, self._targets))):
            answer = self.host.run(script, timeout_s=120)
            pairs = (line.partition("=") for line in answer.stdout.splitlines() if "=" in line)
            self._facts[script] = FrozenMap({key: value for key, _, value in pairs})
            if answer.exit_code:
                lines = answer.stderr.strip().splitlines() or ["the probe failed"]
                told.append(f"not all is known of the target: {lines[-1]}")
        return tuple(dict.fromkeys(told))

    def with_probe(self, target: Target[Any]) -> Target[Any]:
        """One of its targets, with what its own probe found; with no facts where that could not be asked."""
        return attrs.evolve(target, facts=self._facts.get(self._probe_of(target), FrozenMap()))

    def _probe_of(self, target: Target[Any]) -> str:
        """The bash of its probe, which is told of the GPU types and images of all runs: those alone make no other."""
        return self.scheduler.probe(target=attrs.evolve(target, gpu_types=self._gpu_types, images=self._images))

    def expect(self, tasks: Iterable[TaskPlan]) -> None:
        """Tasks that a run needs, in order; those known already are shared."""
        for planned in tasks:
            self._tasks.setdefault(planned.key, TaskProgress(planned))

    @property
    def name(self) -> str:
        """What people call its machine."""
        return self.host_name or "this machine"

    @property
    def busy(self) -> bool:
        """Whether tasks are being made there."""
        return any(task.state == "running" for task in self._tasks.values())

    def task(self, key: str) -> TaskProgress:
        """How a task stands."""
        return self._tasks[key]

    def ask(self, tickets: Iterable[JobHandle]) -> Mapping[str, JobStatus]:
        """How these runs stand. Tasks of the scheduler are asked for with them: one question does for all."""
        running = [each for each in self._tasks.values() if each.state == "running"]
        tasks = [_ticket(each) for each in running if each.planned.on == "scheduler"]
        self._seen = self.poll([*tickets, *tasks])
        return self._seen

    def look(self, wanted: Iterable[str]) -> bool:
        """Ask how these tasks stand; true when one of them changed."""
        mine = [self._tasks[key] for key in dict.fromkeys(wanted)]
        before = [task.state for task in mine]
        unknown = [task for task in mine if task.state == "unknown"]
        there = self._whole(unknown)
        for task in unknown:
            task.state = "done" if task.planned.key in there else "missing"
        self._poll_tasks([task for task in mine if task.state == "running"])
        self._forget_waiting()
        return before != [task.state for task in mine]

    def refuse_without_secrets(self, tasks: Iterable[TaskPlan]) -> None:
        """Raises SpecError for a secret that is not set and without which a task that is not done cannot be made.

        Raises TargetError where one cannot ask what is done.
        """
        refuse_missing_secrets((task.script, task.task.kind) for task in self.without_secrets(tasks))

    def without_secrets(self, tasks: Iterable[TaskPlan]) -> list[TaskPlan]:
        """Those of these tasks that are not done, and cannot be made for want of a secret.

        Raises TargetError where one cannot ask what is done.
        """
        tasks = [task for task in tasks if missing_secrets(task.script)]
        self.expect(tasks)
        self.look(task.key for task in tasks)
        return [task for task in tasks if self.task(task.key).state == "missing"]

    def make(self, waiting: Iterable[tuple[str, str]]) -> bool:
        """Start those of these tasks that are missing; true where there was one. Another process may make it too.

        Each is named with a run that waits for it. Raises SpecError for a secret that is not set.
        """
        waiting = tuple(waiting)
        new = [pair for pair in waiting if pair not in self._waiting]
        add_references(((self._tasks[key].planned.script, run_id) for key, run_id in new), self.host)
        self._waiting.update(new)
        missing = [task for key in dict(waiting) if (task := self._tasks[key]).state == "missing"]
        begun = self._with_room(missing)
        place_secrets((task.planned.script for task in begun), self.host)
        try:
            self._submit_tasks(begun)
        except LlmbError as error:
            if certainly_refused(error):
                with suppress(TargetError):  # the refusal itself is what people are told
                    self._take_back_secrets(begun)
            raise
        return bool(missing)

    def _take_back_secrets(self, tasks: list[TaskProgress]) -> None:
        """Of those tasks that no process makes: another one may have begun any of them."""
        tasks = [task for task in tasks if task.planned.script.secrets]
        seen = self._poll(tasks)
        nowhere = [task for task in tasks if seen[task.planned.key].state in ("absent", "ended")]
        forget_secrets((task.planned.script for task in nowhere), self.host)

    def _forget_waiting(self) -> None:
        """What is done nobody waits for; a task that failed here may be made elsewhere."""
        over = {
            pair: self._tasks[pair[0]] for pair in self._waiting if self._tasks[pair[0]].state in ("done", "failed")
        }
        ids = ((task, "" if task.state == "done" else run_id) for (_, run_id), task in over.items())
        drop_references(dict.fromkeys((task.planned.script, run_id) for task, run_id in ids), self.host)
        self._waiting -= over.keys()

    def list_references(self, keys: Iterable[str], over: Iterable[str]) -> Mapping[str, list[str]]:
        """The ids of the runs of any process that wait for each of these tasks, without those that are ``over``."""
        return list_references((self._tasks[key].planned.script for key in keys), over, self.host)

    def alive(self, keys: Iterable[str]) -> Mapping[str, JobStatus]:
        """How those of these tasks stand whose jobs wait or run, whoever began them."""
        seen = self._poll([self._tasks[key] for key in keys])
        return {key: status for key, status in seen.items() if status.state in ("pending", "running")}

    def end(self, keys: Iterable[str], alive: Container[str]) -> None:
        """End the jobs of those of these tasks that are alive; no secret of any stays."""
        tasks = [self._tasks[key] for key in keys]
        on_host, others = _tickets(task for task in tasks if task.planned.key in alive)
        if on_host:
            cancel_detached(on_host, self.host)
        if others:
            self.cancel(others)
        forget_secrets((task.planned.script for task in tasks), self.host)
        for task in tasks:
            task.state = "unknown"

    def _poll(self, tasks: Iterable[TaskProgress]) -> Mapping[str, JobStatus]:
        on_host, others = _tickets(tasks)
        return {**self.poll(others), **poll_detached(on_host, self.host)}

    def _with_room(self, tasks: list[TaskProgress]) -> list[TaskProgress]:
        """Those for which there is room, one beside the other; the others have failed."""
        if not any(task.planned.task.space_gb for task in tasks):
            return tasks
        folder = self.workdir
        there = left = free_space_gb(folder, self.host)
        for task in tasks:
            wanted = task.planned.task.space_gb
            if wanted > left:
                beside = "" if left == there else f", of which others that are made now take {there - left:.1f} GB"
                task.fail(
                    f"it takes {wanted:g} GB in {folder}, where {there:.1f} GB are free{beside}",
                    "make room there, or choose another target.workdir",
                )
            else:
                left -= wanted
        return [task for task in tasks if task.state == "missing"]

    def _submit_tasks(self, tasks: list[TaskProgress]) -> None:
        on_host = [task.planned.script for task in tasks if task.planned.on == "host"]
        tickets = dict(submit_detached(on_host, self.host)) if on_host else {}
        tickets |= self.submit([task.planned.script for task in tasks if task.planned.on == "scheduler"])
        for task in tasks:
            task.state = "running"
            if (ticket := tickets[task.planned.key]).refused:
                task.fail(ticket.refused, ticket.remedy, "refused")
                forget_secrets([task.planned.script], self.host)

    def _poll_tasks(self, tasks: list[TaskProgress]) -> None:
        on_host = [_ticket(task) for task in tasks if task.planned.on == "host"]
        seen = {**self._seen, **poll_detached(on_host, self.host)}
        asked = [task for task in tasks if task.planned.key in seen]
        never = [task for task in asked if seen[task.planned.key].unsatisfiable]
        if never:
            self.cancel([_ticket(task) for task in never])
        for task in asked:
            task.reason = seen[task.planned.key].reason
        over = never + [task for task in asked if seen[task.planned.key].state in ("ended", "absent")]
        forget_secrets((task.planned.script for task in over), self.host)
        there = self._whole(over)
        for task in over:
            self._settle(task, seen[task.planned.key], whole=task.planned.key in there)

    def _settle(self, task: TaskProgress, status: JobStatus, *, whole: bool) -> None:
        if whole:
            task.state = "done"
        elif not task.make_anew(status):
            reason, task.log = describe_task_failure(task.planned, status, self.host)
            task.fail(reason, status.remedy)

    def _whole(self, tasks: list[TaskProgress]) -> set[str]:
        """The keys of those whose check passes, all asked in one command."""
        if not tasks:
            return set()
        lines = [
            f"if ({task.planned.task.check}\n) >/dev/null 2>&1; then echo {shlex.quote(task.planned.key)}; fi"
            for task in tasks
        ]
        answer = self.host.run("\n".join(lines))
        if answer.exit_code:
            raise TargetError(f"cannot look for what is there already: {answer.stderr.strip()}")
        return set(answer.stdout.splitlines())

    def submit(self, scripts: list[Script]) -> Mapping[str, JobHandle]:
        """Submit runs; those that were submitted before are not submitted again."""
        return self.scheduler.submit(scripts=scripts, host=self.host) if scripts else {}

    def poll(self, tickets: list[JobHandle]) -> Mapping[str, JobStatus]:
        """Ask for many jobs at once."""
        return self.scheduler.poll(tickets=tickets, host=self.host) if tickets else {}

    def cancel(self, tickets: list[JobHandle]) -> None:
        """End these runs and no others."""
        self.scheduler.cancel(tickets=tickets, host=self.host)


def _ticket(task: TaskProgress) -> JobHandle:
    return JobHandle(id=task.planned.key, directory=task.planned.script.directory)


def _tickets(tasks: Iterable[TaskProgress]) -> tuple[list[JobHandle], list[JobHandle]]:
    """Of those that are processes of the host, and of the scheduler's jobs."""
    found: dict[str, list[JobHandle]] = {"host": [], "scheduler": []}
    for task in tasks:
        found[task.planned.on].append(_ticket(task))
    return found["host"], found["scheduler"]
