"""What would be done: pure. A dry run prints it, ``validate`` keeps only the faults that it raises."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

import attrs

from llmb.hosts.repository import repository_task
from llmb.plugins.registry import PluginRegistry
from llmb.spec.doubt import touches
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.structure import unstructure
from llmb.spec.trial import Trial
from llmb.spec.window_check import window_faults
from llmb.values.errors import Fault, PluginError, RecipeError, SpecError, located
from llmb.values.frozen import FrozenMap
from llmb.values.job import Environment, Image, Job, Phase, Script, Task
from llmb.values.run import Run, Target
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
        """Return the task as ``llmb run --dry-run --json`` prints it."""
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

    placed: RunSpec
    job: Job
    script: Script
    tasks: tuple[TaskPlan, ...]

    @property
    def run(self) -> Run[Any]:
        """What is run."""
        return self.placed.run

    @property
    def target(self) -> Target[Any]:
        """Where it is run."""
        return self.placed.target

    @property
    def images(self) -> bool:
        """Whether anything of it runs in an image."""
        jobs = (self.job, *(task.task.work for task in self.tasks))
        return any(isinstance(job, Job) and isinstance(job.environment.base, Image) for job in jobs)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of all secrets, those of the tasks too."""
        return frozenset(
            name for script in (self.script, *(task.script for task in self.tasks)) for name in script.secrets
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as ``llmb run --dry-run --json`` prints it: values of the spec, job, script, preparation."""
        run, target = self.run, self.target
        return {
            "name": run.name,
            "recipe": run.recipe,
            "release": run.release,
            "gpu_type": run.gpu_type,
            "dtype": run.dtype,
            "gpus": run.gpus,
            "steps": run.steps,
            "repeat": run.repeat,
            "repeats": self.placed.repeats,
            "sweep": unstructure(self.placed.swept),
            "parallelism": {**attrs.asdict(run.parallelism), "dp": run.parallelism.data_parallel(run.gpus)},
            "model": unstructure(run.model),
            "window": run.window if run.window == "last" else list(run.window),
            "tolerance": run.tolerance,
            "differences": list(run.differences),
            "image": run.image.ref if run.image else None,
            "time_limit_s": run.time_limit_s,
            "framework": unstructure(run.options),
            "env": dict(run.env),
            "mounts": [attrs.asdict(mount) for mount in run.mounts],
            "profile": attrs.asdict(run.profile) if run.profile else None,
            "target": {
                "name": target.name,
                "scheduler": target.scheduler,
                "host": target.host,
                "workdir": target.workdir,
                **unstructure(target.options),
            },
            "job": self.job.as_dict(),
            "script": self.script.text,
            "preparation": [task.as_dict() for task in self.tasks],
        }


def plan(workload: Workload, *, pool: PluginRegistry | None = None) -> tuple[RunPlan, ...]:
    """Plan all runs of a workload; nothing is started. Runs without an id get one.

    ``pool`` may have the plugins that are loaded already.
    Raises SpecError with the faults of every run that its plugins refuse, RecipeError where one finds a fault in the
    recipe's own tables.
    """
    pool = pool or PluginRegistry()
    planned: list[RunPlan] = []
    faults: list[Fault] = []
    for placed in _with_run_ids(workload).runs:
        try:
            faults += map(placed.source_map.locate, window_faults(placed.run, pool.framework(placed.run.framework)))
            planned.append(plan_run(placed, pool))
        except RecipeError as error:
            raise RecipeError(*located(error.faults, placed.run.recipe)) from error
        except SpecError as error:
            refused = (*error.faults, *_refused(placed.run, placed.target, pool))
            faults += map(placed.source_map.locate, refused)
    if faults:
        raise SpecError(*dict.fromkeys(faults))
    return tuple(planned)


def _with_run_ids(workload: Workload) -> Workload:
    return workload if all(spec.run.id for spec in workload.runs) else draw_run_ids(workload)


def refusals(trial: Trial, pool: PluginRegistry) -> Iterator[Fault]:
    """What the plugins refuse of every run of a trial, at keys that are not in doubt."""
    told: list[Fault] | None = None
    for run in trial.runs:
        refused = [
            fault
            for fault in _refused(run, _for(run, trial.target), pool)
            if fault.key and not touches(trial.doubt, [fault.key])
        ]
        told = refused if told is None else [fault for fault in told if fault in refused]
        if not told:
            return
    yield from map(trial.source_map.locate, told or ())


def _for(run: Run[Any], target: Target[Any] | None) -> Target[Any] | None:
    """The target as the scheduler is told of it for this run."""
    return target and attrs.evolve(target, gpus_per_node=run.gpus_per_node)


def plan_run(placed: RunSpec, pool: PluginRegistry) -> RunPlan:
    """One run, planned: every hook that comes before an effect is called here; the first that refuses ends it."""
    run, target = placed.run, placed.target
    framework, scheduler = pool.framework(run.framework), pool.scheduler(target.scheduler)
    environment = framework.prepare_env(run=run)
    tasks = [repository_task(repository, target.cache) for repository in environment.repositories]
    tasks += scheduler.prepare_env(environment=environment, target=target)
    if (dataset := framework.prepare_dataset(run=run)) is not None:
        tasks += scheduler.prepare_dataset(dataset=dataset, target=target).tasks
    job = framework.build_job(run=run)
    if job.environment not in (Environment(), environment):
        raise PluginError(f"{run.framework}: build_job() sets Job.environment, which is what prepare_env() answers")
    job = _with_all_of_the_run(job, run, environment)
    script = _with_secrets(scheduler.build_job(job=job, target=target), environment.secrets)
    _refuse_logs_of_one_name(script, target.scheduler)
    return RunPlan(placed=placed, job=job, script=script, tasks=tuple(_plan_task(task, target, pool) for task in tasks))


def _refused(run: Run[Any], target: Target[Any] | None, pool: PluginRegistry) -> list[Fault]:
    """All that is refused of one run: each hook is asked that can be, whatever the others refuse.

    Without a target only the framework is asked. Where that refuses to build a job, the scheduler is asked about one
    that has nothing to do but what the spec itself says of it.
    """
    faults: list[Fault] = []
    ask = partial(_answer, faults)
    framework = pool.framework(run.framework)
    faults += ask(lambda: (*window_faults(run, framework),)) or ()
    environment, dataset = ask(framework.prepare_env, run=run), ask(framework.prepare_dataset, run=run)
    job = ask(framework.build_job, run=run)
    if target is None:
        return faults
    scheduler, tasks = pool.scheduler(target.scheduler), []
    if dataset is not None and (made := ask(scheduler.prepare_dataset, dataset=dataset, target=target)) is not None:
        tasks += made.tasks
    if environment is not None:
        tasks += ask(scheduler.prepare_env, environment=environment, target=target) or ()
        job = _with_all_of_the_run(job or _with_nothing_to_do(run), run, environment)
        ask(scheduler.build_job, job=job, target=target)
    for task in tasks:
        ask(_plan_task, task, target, pool)
    return faults


def _answer(faults: list[Fault], hook: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a hook answers; null, and its faults noted, where it refuses."""
    try:
        return hook(*arguments, **named)
    except SpecError as error:
        faults += error.faults
        return None
    except Exception:  # noqa: BLE001  # a plugin that fails is told of once the spec is right; it must hide no fault
        return None


def _with_nothing_to_do(run: Run[Any]) -> Job:
    """The least that a job of this run can be."""
    return Job(
        id=run.id,
        directory=run.paths.run,
        phases=(Phase(name="none", command=("true",)),),
        nodes=run.nodes,
        tasks_per_node=1,
        gpus_per_node=0,
        time_limit_s=run.time_limit_s,
    )


def _with_all_of_the_run(job: Job, run: Run[Any], environment: Environment) -> Job:
    """The framework's job in its environment, with what the spec itself adds."""
    return attrs.evolve(
        job,
        environment=environment,
        env=FrozenMap({**job.env, **run.env}),
        phases=tuple(_without(phase, run.env) for phase in job.phases),
        mounts=(*job.mounts, *run.mounts),
    )


def _without(phase: Phase, names: Container[str]) -> Phase:
    """The phase without these variables of its own, so that the job's count there too."""
    return attrs.evolve(phase, env=FrozenMap((name, value) for name, value in phase.env.items() if name not in names))


def _plan_task(task: Task, target: Target[Any], pool: PluginRegistry) -> TaskPlan:
    if isinstance(task.work, str):
        script = _host_script(task, f"{target.workdir}/tasks/{task.key}", task.work)
        return TaskPlan(task=task, script=script, on="host")
    secrets = tuple(dict.fromkeys((*task.work.environment.secrets, *task.secrets)))
    job = attrs.evolve(task.work, environment=attrs.evolve(task.work.environment, secrets=secrets))
    script = pool.scheduler(target.scheduler).build_job(job=job, target=target)
    script = _with_secrets(attrs.evolve(script, check=task.check), secrets)
    return TaskPlan(task=task, script=script, on="scheduler")


def _with_secrets(script: Script, names: Iterable[str]) -> Script:
    """With these secrets besides those that the scheduler itself needs."""
    return attrs.evolve(script, secrets=tuple(dict.fromkeys((*script.secrets, *names))))


def _refuse_logs_of_one_name(script: Script, scheduler: str) -> None:
    """The copies of a run's logs lie beside one another."""
    names = [PurePosixPath(log).name for logs in script.logs.values() for log in logs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PluginError(f"{scheduler}: build_job() names several logs {twice[0]}; each needs a name of its own")


def _host_script(task: Task, directory: str, work: str) -> Script:
    """Bash for the target's host. It looks again first: another process may have made it in the meantime."""
    secrets = "if [ -f .secrets ]; then . ./.secrets && rm -f .secrets; fi\n" if task.secrets else ""
    look = f"if ({task.check}\n) >/dev/null 2>&1; then exit 0; fi\n"
    text = f"#!/usr/bin/env bash\n: >begun\n{secrets}{look}{work}\n"
    return Script(
        id=task.key,
        directory=directory,
        text=text,
        check=task.check,
        secrets=task.secrets,
        logs=FrozenMap({task.kind: (f"{directory}/out.log",)}),
    )
