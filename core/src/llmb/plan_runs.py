"""Plan the work of each run: its job, its script and the tasks before it. Planning starts nothing."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.hosts.git_repository import repository_task
from llmb.plan_shared_tasks import TaskPlan, TaskPlans, check_script, with_secrets
from llmb.plugins.guard import plugin_error
from llmb.plugins.registry import PluginRegistry
from llmb.scripts.sample_gpus import with_telemetry
from llmb.spec.cross_checks import check_printed_steps
from llmb.spec.expand_sweep import join_errors
from llmb.spec.run_ids import draw_run_ids
from llmb.values.copy_with_changes import with_changes
from llmb.values.env_and_mounts_of_target import (
    locate_in_target,
    with_settings,
    with_target_differences,
    with_target_secrets,
    with_target_settings,
)
from llmb.values.environment import Environment, Image
from llmb.values.errors import Fault, PluginError, RecipeError, SpecError, collect_errors, located
from llmb.values.job import Job, Script, Task
from llmb.values.run import Run, Target
from llmb.values.types.check_arguments import check_arguments
from llmb.values.types.check_types import encode
from llmb.values.workload import RunSpec, Workload


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
    def uses_images(self) -> bool:
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
        of_run = ("name", "recipe", "release", "gpu_type", "dtype", "gpus", "variant", "proxy", "steps", "repeat")
        of_target = ("name", "scheduler", "host", "workdir", "env", "mounts", "secrets")
        return {
            **{key: getattr(run, key) for key in of_run},
            "repeats": self.spec.repeats,
            "sweep": encode(self.spec.swept),
            "parallelism": {**attrs.asdict(run.parallelism), "dp": run.parallelism.data_parallel(run.gpus)},
            "model": encode(run.architecture) or {"seq_len": run.seq_len},
            "window": encode(run.window),
            "tolerance": run.tolerance,
            "differences": list(run.differences),
            "image": run.image.ref if run.image else None,
            "time_limit_s": run.time_limit_s,
            "framework": encode(run.options),
            "env": dict(run.env),
            "mounts": encode(run.mounts),
            "profile": attrs.asdict(run.profile) if run.profile else None,
            "telemetry": attrs.asdict(run.telemetry) if run.telemetry else None,
            "target": {
                **{key: encode(getattr(target, key)) for key in of_target},
                **encode(target.options),
            },
            "job": self.job.as_dict(),
            "script": self.script.text,
            "secrets": sorted(self.secrets),
            "preparation": [{"key": task.key, "kind": task.task.kind} for task in self.tasks],
        }


@check_arguments
def plan(workload: Workload, *, registry: PluginRegistry | None = None) -> tuple[RunPlan, ...]:
    """Plan all runs of a workload; nothing is started. Run ids are drawn for a workload without them.

    ``registry`` may have loaded plugins already. Raise SpecError with the errors that the plugins find in all
    runs, and RecipeError for an error in the recipe's own tables.
    """
    return tuple(_plan_each(workload, registry or PluginRegistry()))


@check_arguments
def validate(workload: Workload, *, registry: PluginRegistry | None = None) -> None:
    """Raise the errors that `plan` raises. No plan is kept, because the plans of 10,000 runs take 150 MB."""
    for _plan in _plan_each(workload.first_repeats, registry or PluginRegistry()):
        pass


def _plan_each(workload: Workload, registry: PluginRegistry) -> Iterator[RunPlan]:
    """Yield the plan of each run without errors. Raise the errors of all runs after the last run."""
    errors: list[Fault] = []
    for framework, recipe in dict.fromkeys((spec.run.framework, spec.run.recipe) for spec in workload.runs):
        with collect_errors(errors, RecipeError):
            registry.check_settings(framework, recipe)
    if errors:
        raise RecipeError(*dict.fromkeys(errors))
    task_plans = TaskPlans()
    if not all(spec.run.id for spec in workload.runs):
        workload = draw_run_ids(workload)
    for spec in workload.runs:
        try:
            yield plan_run(spec, registry, task_plans)
        except RecipeError as error:
            raise RecipeError(*located(error.faults, spec.run.recipe)) from error
        except SpecError as error:
            errors += map(spec.source_map.locate, error.faults)
    if errors:
        raise SpecError(*join_errors(errors, (spec.source_map for spec in workload.runs)))


def plan_run(spec: RunSpec, registry: PluginRegistry, task_plans: TaskPlans | None = None) -> RunPlan:
    """Plan one run: call every hook that comes before an effect. ``task_plans`` are those of other runs.

    Raise SpecError with the errors of all hooks. A hook that needs the result of a failed hook is skipped.
    """
    target, task_plans = spec.target, task_plans or TaskPlans()
    run = with_target_settings(spec.run, target)
    framework, scheduler = registry.framework(run.framework), registry.scheduler(target.scheduler)
    job, script = None, None
    errors: list[Fault] = []
    if run.repeat == 1:  # the other repeats have the same parsers and the same window
        with collect_errors(errors):
            scheduler.parse_log(run=run)
            check_printed_steps(run, framework.parse_log(run=run))  # for any window: a broken parser costs no job
    environment, tasks = _prepare(framework, scheduler, run, target, task_plans, errors)
    with collect_errors(errors):
        job = framework.build_job(run=run)
        if not any(phase.measured for phase in job.phases):
            problem = "build_job() returned a job in which no phase is measured"
            raise plugin_error(framework, f"{problem}; set measured=True for the phase whose log has the steps")
    if environment and job:
        if (changed := with_target_differences(spec.run, target, job)) is not spec.run:
            spec = attrs.evolve(spec, run=changed)
        job = _complete_job(job, run, target, environment)
        with collect_errors(errors):
            script = with_secrets(scheduler.build_job(job=job, target=target), environment.secrets)
            check_script(script, job, scheduler)
            _check_logs(script, job, scheduler)
            _check_file_names(job, script, run.framework, target.scheduler)
    planned_tasks = []
    for task in tasks:
        with collect_errors(errors):
            planned_tasks.append(task_plans.plan(task, target, scheduler))
    if errors or job is None or script is None:
        raise SpecError(*(locate_in_target(error, spec.run, target) for error in errors))
    return RunPlan(spec=spec, job=job, script=script, tasks=tuple(planned_tasks))


def _prepare(
    framework: FrameworkHooks[Any],
    scheduler: SchedulerHooks[Any],
    run: Run[Any],
    target: Target[Any],
    task_plans: TaskPlans,
    errors: list[Fault],
) -> tuple[Environment | None, list[Task]]:
    """Return the run's environment, None if its hook fails, and the tasks that create environment and data."""
    environment = None
    tasks: list[Task] = []
    with collect_errors(errors):
        environment = with_target_secrets(framework.prepare_env(run=run), target)
        tasks += (repository_task(repository, target.cache) for repository in environment.repositories)
        tasks += task_plans.prepare_env(environment, target, scheduler)
    with collect_errors(errors):
        dataset = framework.prepare_dataset(run=run)
        tasks += task_plans.prepare_dataset(dataset, target, scheduler) if dataset is not None else ()
    return environment, tasks


def _complete_job(job: Job, run: Run[Any], target: Target[Any], environment: Environment) -> Job:
    """Return the framework's job with its environment, and with the variables and mounts of target and spec.

    Raise PluginError if the framework sets the environment itself.
    """
    if job.environment != Environment() and with_target_secrets(job.environment, target) != environment:
        raise PluginError(f"{run.framework}: build_job() sets Job.environment; prepare_env() has to return it")
    return with_settings(with_telemetry(with_changes(job, environment=environment), run), run.env, run.mounts)


def _check_logs(script: Script, job: Job, scheduler: SchedulerHooks[Any]) -> None:
    """Raise PluginError if a measured phase has no log, or if two logs have one file name.

    The record keeps copies of all logs in one folder.
    """
    if missing := [phase.name for phase in job.phases if phase.measured and not script.logs.get(phase.name)]:
        raise plugin_error(scheduler, f"build_job() returned no log of the phase {missing[0]}, which is measured")
    names = Counter(log.rpartition("/")[2] for logs in script.logs.values() for log in logs)
    if duplicates := sorted(name for name, count in names.items() if count > 1):
        problem = f"build_job() returned several logs named {duplicates[0]}; each needs a different name"
        raise plugin_error(scheduler, problem)


def _check_file_names(job: Job, script: Script, framework: str, scheduler: str) -> None:
    """Raise PluginError if a file of the job would replace one that the scheduler writes into the job's directory."""
    for path in job.files:
        name = path.removeprefix(f"{job.directory}/").partition("/")[0]
        if name in script.reserved_files:
            message = f'{framework}: build_job() returned the file "{name}", which {scheduler} writes itself'
            raise PluginError(f"{message}; it needs another name")
