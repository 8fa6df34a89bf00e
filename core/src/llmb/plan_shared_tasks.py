"""Plans of shared tasks, such as an image or a dataset: what is submitted to create them."""

import shlex
from collections.abc import Iterable
from typing import Any, Literal

import attrs

from llmb.hookspecs import SchedulerHooks
from llmb.plugins.guard import plugin_error
from llmb.values.copy_with_changes import with_changes
from llmb.values.env_and_mounts_of_target import with_settings
from llmb.values.environment import Environment
from llmb.values.frozen import FrozenMap
from llmb.values.job import Dataset, Job, Script, Task
from llmb.values.run import Target


@attrs.frozen(kw_only=True)
class TaskPlan:
    """A shared task as it is submitted: to the scheduler, or as a detached process of the target's host."""

    task: Task
    script: Script
    on: Literal["scheduler", "host"]

    @property
    def key(self) -> str:
        """The task's identity."""
        return self.task.key

    def as_dict(self) -> dict[str, Any]:
        """Return the task as ``llmb run --dry-run --json`` prints it, once for all runs that share it."""
        return {
            "key": self.key,
            "kind": self.task.kind,
            "job": self.task.work.as_dict() if isinstance(self.task.work, Job) else None,
            "script": self.script.text,
            "check": self.task.check,
            "space_gb": self.task.space_gb,
            "secrets": list(self.task.secrets),
        }


class TaskPlans:
    """The shared tasks of a sweep, and their plans.

    Runs with equal environments, datasets and targets share their tasks. Equal tasks on equal targets share one plan,
    because scripts may be large.
    """

    def __init__(self) -> None:
        self._environment: tuple[Environment, Target[Any], tuple[Task, ...]] | None = None
        self._dataset: tuple[Dataset, Target[Any], tuple[Task, ...]] | None = None
        self._latest: dict[str, tuple[Task, Target[Any], TaskPlan]] = {}

    def prepare_env(
        self, environment: Environment, target: Target[Any], scheduler: SchedulerHooks[Any]
    ) -> tuple[Task, ...]:
        """Return the scheduler's tasks for an environment. The hook is called again if its arguments are others."""
        if self._environment is None or self._environment[:2] != (environment, target):
            tasks = scheduler.prepare_env(environment=environment, target=target)
            self._environment = environment, target, tuple(tasks)
        return self._environment[2]

    def prepare_dataset(
        self, dataset: Dataset, target: Target[Any], scheduler: SchedulerHooks[Any]
    ) -> tuple[Task, ...]:
        """Return the scheduler's tasks for a dataset. The hook is called again if its arguments are others."""
        if self._dataset is None or self._dataset[:2] != (dataset, target):
            tasks = scheduler.prepare_dataset(dataset=dataset, target=target).tasks
            self._dataset = dataset, target, tasks
        return self._dataset[2]

    def plan(self, task: Task, target: Target[Any], scheduler: SchedulerHooks[Any]) -> TaskPlan:
        """Return the plan of a task on this target."""
        known = self._latest.get(task.key)
        if known is None or known[:2] != (task, target):
            known = self._latest[task.key] = (task, target, _plan_task(task, target, scheduler))
        return known[2]


def with_secrets(script: Script, names: Iterable[str]) -> Script:
    """Return the script with these secrets and those that the scheduler itself needs."""
    secrets = tuple(dict.fromkeys((*script.secrets, *names)))
    return script if secrets == script.secrets else with_changes(script, secrets=secrets)


def check_script(script: Script, job: Job, scheduler: SchedulerHooks[Any]) -> None:
    """Raise PluginError if a script has another id or directory than its job, by which llmb finds the job again."""
    message = ""
    if script.id != job.id:
        message = f'a script with the id "{script.id}"; expected that of the job, "{job.id}"'
    elif script.directory != job.directory:
        message = f'a script in "{script.directory}"; expected the directory of the job, "{job.directory}"'
    if message:
        raise plugin_error(scheduler, f"build_job() returned {message}")


def _plan_task(task: Task, target: Target[Any], scheduler: SchedulerHooks[Any]) -> TaskPlan:
    if isinstance(task.work, str):
        return TaskPlan(task=task, script=_host_script(task, target, task.work), on="host")
    secrets = tuple(dict.fromkeys((*task.work.environment.secrets, *task.secrets, *target.secrets)))
    job = attrs.evolve(task.work, environment=attrs.evolve(task.work.environment, secrets=secrets))
    job = with_settings(job, target.env, target.mounts)
    script = attrs.evolve(scheduler.build_job(job=job, target=target), check=task.check)
    check_script(script, job, scheduler)
    return TaskPlan(task=task, script=with_secrets(script, secrets), on="scheduler")


def _host_script(task: Task, target: Target[Any], work: str) -> Script:
    """Return a script for the target's host. It checks first whether another process has completed the task."""
    directory = f"{target.workdir}/tasks/{task.key}"
    secrets = tuple(dict.fromkeys((*task.secrets, *target.secrets)))
    read_secrets = "if [ -f .secrets ]; then . ./.secrets && rm -f .secrets; fi\n" if secrets else ""
    env = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in target.env.items())
    check = f"if ({task.check}\n) >/dev/null 2>&1; then exit 0; fi\n"
    text = f"#!/usr/bin/env bash\n: >begun\n{read_secrets}{env}{check}{work}\n"  # as in jobs, [target.env] wins
    return Script(
        id=task.key,
        directory=directory,
        text=text,
        check=task.check,
        secrets=secrets,
        logs=FrozenMap({task.kind: (f"{directory}/out.log",)}),
    )
