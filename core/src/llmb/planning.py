"""Plan the work of each run: its job, its script and the tasks before it. Planning starts nothing."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import attrs

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.hosts.git_repository import repository_task
from llmb.plugins.registry import PluginRegistry
from llmb.scripts.telemetry import with_telemetry
from llmb.spec.check_window import check_printed_steps
from llmb.spec.run_ids import draw_run_ids
from llmb.values.environment import Environment, Image
from llmb.values.errors import Fault, PluginError, RecipeError, SpecError, located
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Script, Task
from llmb.values.run import Run, Target
from llmb.values.target_settings import (
    locate_in_target,
    settings_as_dict,
    with_settings,
    with_target_differences,
    with_target_secrets,
    with_target_settings,
)
from llmb.values.typed import encode
from llmb.values.with_changes import with_changes
from llmb.values.workload import RunSpec, Workload


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


@attrs.frozen(kw_only=True)
class RunPlan:
    """A run with its job, its script, and the tasks that come before it, in order."""

    spec: RunSpec
    job: Job
    script: Script
    tasks: tuple[TaskPlan, ...]

    @property
    def run(self) -> Run[Any]:
        """The run, as frameworks see it."""
        return self.spec.run

    @property
    def target(self) -> Target[Any]:
        """The target, as schedulers see it."""
        return self.spec.target

    @property
    def images(self) -> bool:
        """True if the job or a task runs in an image."""
        jobs = (self.job, *(task.task.work for task in self.tasks))
        return any(isinstance(job, Job) and isinstance(job.environment.base, Image) for job in jobs)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of all secrets, with those of the tasks."""
        return frozenset(
            name for script in (self.script, *(task.script for task in self.tasks)) for name in script.secrets
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as ``llmb run --dry-run --json`` prints it: values of the spec, job, script, preparation.

        The preparation lists the key and the kind of each task. Several runs share the rest, `TaskPlan.as_dict`.
        """
        run, target = self.run, self.target
        stated = ("name", "recipe", "release", "gpu_type", "dtype", "gpus", "variant", "proxy", "steps", "repeat")
        return {
            **{key: getattr(run, key) for key in stated},
            "repeats": self.spec.repeats,
            "sweep": encode(self.spec.swept),
            "parallelism": {**attrs.asdict(run.parallelism), "dp": run.parallelism.data_parallel(run.gpus)},
            "model": encode(run.architecture) or {"seq_len": run.seq_len},
            "window": run.window if run.window == "last" else list(run.window),
            "tolerance": run.tolerance,
            "differences": list(run.differences),
            "image": run.image.ref if run.image else None,
            "time_limit_s": run.time_limit_s,
            "framework": encode(run.options),
            "env": dict(run.env),
            "mounts": [attrs.asdict(mount) for mount in run.mounts],
            "profile": attrs.asdict(run.profile) if run.profile else None,
            "telemetry": attrs.asdict(run.telemetry) if run.telemetry else None,
            "target": {
                "name": target.name,
                "scheduler": target.scheduler,
                "host": target.host,
                "workdir": target.workdir,
                **settings_as_dict(target),
                **encode(target.options),
            },
            "job": self.job.as_dict(),
            "script": self.script.text,
            "secrets": sorted(self.secrets),
            "preparation": [{"key": task.key, "kind": task.task.kind} for task in self.tasks],
        }


def plan(workload: Workload, *, registry: PluginRegistry | None = None) -> tuple[RunPlan, ...]:
    """Plan all runs of a workload; nothing is started. Run ids are drawn for a workload without them.

    ``registry`` may have loaded plugins already. Raise SpecError with the errors that the plugins find in all
    runs, and RecipeError if a plugin finds an error in the recipe's own tables.
    """
    registry = registry or PluginRegistry()
    plans: list[RunPlan] = []
    errors: list[Fault] = []
    task_plans = TaskPlans()
    for spec in _with_run_ids(workload).runs:
        try:
            plans.append(plan_run(spec, registry, task_plans))
        except RecipeError as error:
            raise RecipeError(*located(error.faults, spec.run.recipe)) from error
        except SpecError as error:
            errors += map(spec.source_map.locate, error.faults)
    if errors:
        raise SpecError(*dict.fromkeys(errors))
    return tuple(plans)


class TaskPlans:
    """The plans of shared tasks. Equal tasks on equal targets share one plan, because scripts may be large."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[Task, Target[Any], TaskPlan]] = {}

    def plan(self, task: Task, target: Target[Any], scheduler: SchedulerHooks[Any]) -> TaskPlan:
        """Return the plan of a task on this target."""
        known = self._latest.get(task.key)
        if known is None or known[:2] != (task, target):
            known = self._latest[task.key] = (task, target, _plan_task(task, target, scheduler))
        return known[2]


def plan_run(spec: RunSpec, registry: PluginRegistry, task_plans: TaskPlans | None = None) -> RunPlan:
    """Plan one run: call every hook that comes before an effect. ``task_plans`` are those of other runs.

    Raise SpecError with the errors of all hooks. A hook that needs the result of a failed hook is skipped.
    """
    target = spec.target
    run = with_target_settings(spec.run, target)
    framework, scheduler = registry.framework(run.framework), registry.scheduler(target.scheduler)
    job, script = None, None
    errors: list[Fault] = []
    if run.repeat == 1:  # the other repeats have the same parsers and the same window
        with _collect(errors):
            scheduler.parse_log(run=run)
            check_printed_steps(run, framework.parse_log(run=run))  # for any window: a broken parser costs no job
    environment, tasks = _prepare(framework, scheduler, run, target, errors)
    with _collect(errors):
        job = framework.build_job(run=run)
    if environment and job:
        if (changed := with_target_differences(spec.run, target, job)) is not spec.run:
            spec = attrs.evolve(spec, run=changed)
        job = _complete_job(job, run, target, environment)
        with _collect(errors):
            script = _with_secrets(scheduler.build_job(job=job, target=target), environment.secrets)
            _check_log_names(script, target.scheduler)
    planned_tasks = []
    for task in tasks:
        with _collect(errors):
            planned_tasks.append((task_plans or TaskPlans()).plan(task, target, scheduler))
    if errors or job is None or script is None:
        raise SpecError(*(locate_in_target(error, spec.run, target) for error in errors))
    return RunPlan(spec=spec, job=job, script=script, tasks=tuple(planned_tasks))


@contextmanager
def _collect(errors: list[Fault]) -> Iterator[None]:
    """Append the errors of a SpecError instead of raising it, so that the next hook can be called."""
    try:
        yield
    except SpecError as error:
        errors.extend(error.faults)


def _prepare(
    framework: FrameworkHooks[Any],
    scheduler: SchedulerHooks[Any],
    run: Run[Any],
    target: Target[Any],
    errors: list[Fault],
) -> tuple[Environment | None, list[Task]]:
    """Return the run's environment, None if its hook fails, and the tasks that create environment and data."""
    environment = None
    tasks: list[Task] = []
    with _collect(errors):
        environment = with_target_secrets(framework.prepare_env(run=run), target)
        tasks += (repository_task(repository, target.cache) for repository in environment.repositories)
        tasks += scheduler.prepare_env(environment=environment, target=target)
    with _collect(errors):
        dataset = framework.prepare_dataset(run=run)
        tasks += scheduler.prepare_dataset(dataset=dataset, target=target).tasks if dataset is not None else ()
    return environment, tasks


def _with_run_ids(workload: Workload) -> Workload:
    return workload if all(spec.run.id for spec in workload.runs) else draw_run_ids(workload)


def _complete_job(job: Job, run: Run[Any], target: Target[Any], environment: Environment) -> Job:
    """Return the framework's job with its environment, and with the variables and mounts of target and spec.

    Raise PluginError if the framework sets the environment itself.
    """
    if job.environment != Environment() and with_target_secrets(job.environment, target) != environment:
        raise PluginError(f"{run.framework}: build_job() sets Job.environment; prepare_env() has to return it")
    return with_settings(with_telemetry(with_changes(job, environment=environment), run), run.env, run.mounts)


def _plan_task(task: Task, target: Target[Any], scheduler: SchedulerHooks[Any]) -> TaskPlan:
    if isinstance(task.work, str):
        return TaskPlan(task=task, script=_host_script(task, target, task.work), on="host")
    secrets = tuple(dict.fromkeys((*task.work.environment.secrets, *task.secrets, *target.secrets)))
    job = attrs.evolve(task.work, environment=attrs.evolve(task.work.environment, secrets=secrets))
    job = with_settings(job, target.env, target.mounts)
    script = attrs.evolve(scheduler.build_job(job=job, target=target), check=task.check)
    return TaskPlan(task=task, script=_with_secrets(script, secrets), on="scheduler")


def _with_secrets(script: Script, names: Iterable[str]) -> Script:
    """Return the script with these secrets and those that the scheduler itself needs."""
    secrets = tuple(dict.fromkeys((*script.secrets, *names)))
    return script if secrets == script.secrets else with_changes(script, secrets=secrets)


def _check_log_names(script: Script, scheduler: str) -> None:
    """Raise PluginError if two logs have one file name. The record keeps copies of all logs in one folder."""
    names = [log.rpartition("/")[2] for logs in script.logs.values() for log in logs]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        message = f"{scheduler}: build_job() returned several logs named {duplicates[0]}; each needs a different name"
        raise PluginError(message)


def _host_script(task: Task, target: Target[Any], work: str) -> Script:
    """Return a script for the target's host. It checks first whether another process has completed the task."""
    directory = f"{target.workdir}/tasks/{task.key}"
    secrets = tuple(dict.fromkeys((*task.secrets, *target.secrets)))
    read_secrets = "if [ -f .secrets ]; then . ./.secrets && rm -f .secrets; fi\n" if secrets else ""
    env = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in target.env.items())
    check = f"if ({task.check}\n) >/dev/null 2>&1; then exit 0; fi\n"
    text = f"#!/usr/bin/env bash\n: >begun\n{env}{read_secrets}{check}{work}\n"
    return Script(
        id=task.key,
        directory=directory,
        text=text,
        check=task.check,
        secrets=secrets,
        logs=FrozenMap({task.kind: (f"{directory}/out.log",)}),
    )
