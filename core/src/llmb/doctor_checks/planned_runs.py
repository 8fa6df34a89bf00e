"""Checks of the runs of a spec for ``llmb doctor``: whether they would start on their target."""

import os
from collections.abc import Iterable, Iterator, Sequence

import attrs

from llmb.doctor_checks.target import check_disk_space, check_scheduler, one_line, opened_target, probe_target
from llmb.drive.shared_tasks.task_jobs import find_complete_tasks
from llmb.drive.target_group import TargetGroup, group_key
from llmb.hookspecs import DoctorCheck
from llmb.plan_runs import RunPlan, plan, plan_run
from llmb.plan_shared_tasks import TaskPlan
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import LlmbError
from llmb.values.job import Job
from llmb.values.texts.error_text import counted
from llmb.values.workload import Workload


def check_workload(workload: Workload, registry: PluginRegistry) -> Iterator[DoctorCheck]:
    """Yield the checks of each target of a workload, and of the runs on it.

    Raise SpecError with the errors of the spec, and TargetError if a target cannot be reached.
    """
    by_target: dict[tuple[str, ...], list[RunPlan]] = {}
    for each in plan(workload.first_repeats, registry=registry):
        by_target.setdefault(group_key(each.target), []).append(each)
    for plans in by_target.values():
        with opened_target(plans[0].target, registry) as group:
            checks = dict.fromkeys(_check_runs(plans, group, registry))
        name = plans[0].target.name or plans[0].target.host or plans[0].target.scheduler
        prefix = f"{name}: " if len(by_target) > 1 else ""
        yield from (attrs.evolve(check, name=f"{prefix}{check.name}") for check in checks)


def check_job(planned: RunPlan, registry: PluginRegistry) -> tuple[DoctorCheck, ...]:
    """Return the scheduler's checks of a run's job, and the failed checks of its tasks. The target has facts."""
    scheduler = registry.scheduler(planned.target.scheduler)
    checks = list(scheduler.check_job(job=planned.job, target=planned.target))
    for task in planned.tasks:
        if isinstance(task.task.work, Job):
            of_task = scheduler.check_job(job=task.task.work, target=planned.target)
            checks += (
                attrs.evolve(each, name=f"{task.task.kind}: {each.name}") for each in of_task if each.ok is False
            )
    return tuple(checks)


def _check_runs(plans: Sequence[RunPlan], group: TargetGroup, registry: PluginRegistry) -> Iterator[DoctorCheck]:
    """Yield the checks of one target and of the runs on it."""
    yield from probe_target(group)
    planned = [_plan_with_facts(each, group, registry) for each in plans]
    plans = [each for each, _ in planned]
    tasks = {task.key: task for each in plans for task in each.tasks}
    complete = find_complete_tasks(tasks.values(), group.host)
    missing = [task for task in tasks.values() if task.key not in complete]
    scripts = [each.script for each in plans] + [task.script for task in missing if task.on == "scheduler"]
    target = attrs.evolve(group.with_facts(plans[0].target), uses_images=any(each.uses_images for each in plans))
    yield from check_scheduler(group, target, scripts)
    several = len({each.run.name for each in plans}) > 1
    for each, error in planned:
        prefix = f"{each.run.name}: " if several else ""
        for check in [_failed_check(error)] if error else _check_run(each, registry):
            yield attrs.evolve(check, name=f"{prefix}{check.name}")
    yield from check_disk_space(tasks.values(), complete, group)
    yield from _check_secrets(plans, missing)


def _plan_with_facts(
    planned: RunPlan, group: TargetGroup, registry: PluginRegistry
) -> tuple[RunPlan, LlmbError | None]:
    """Return the plan of a run on a target with facts. If they rule it out, return the old plan and the error."""
    spec = attrs.evolve(planned.spec, target=group.with_facts(planned.target))
    try:
        return plan_run(spec, registry), None
    except LlmbError as error:
        return planned, error


def _check_run(planned: RunPlan, registry: PluginRegistry) -> Iterator[DoctorCheck]:
    """Yield the checks of one run: those of its jobs, or the error of the plugin that makes them."""
    try:
        yield from check_job(planned, registry)
    except LlmbError as error:
        yield _failed_check(error)
    else:
        nodes = counted(planned.job.nodes, f"{planned.run.gpu_type} node")
        yield DoctorCheck(name="run", ok=True, detail=f"{planned.run.recipe}: {nodes}")


def _failed_check(error: LlmbError) -> DoctorCheck:
    return DoctorCheck(name="run", ok=False, detail=one_line(error))


def _check_secrets(plans: Iterable[RunPlan], missing: Iterable[TaskPlan]) -> Iterator[DoctorCheck]:
    """Yield a check for each secret that the runs and the missing items need."""
    scripts = [*(each.script for each in plans), *(task.script for task in missing)]
    for name in sorted({name for script in scripts for name in script.secrets}):
        is_set = bool(os.environ.get(name))
        detail = f"{'' if is_set else 'not '}set in the environment of llmb"
        remedy = "" if is_set else f"run `export {name}=...` before llmb"
        yield DoctorCheck(name=name, ok=is_set, detail=detail, remedy=remedy)
