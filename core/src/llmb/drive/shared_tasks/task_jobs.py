"""Shared tasks on a target: their checks, the space they need, and their jobs."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from llmb.drive.secrets import missing_secrets
from llmb.drive.target_group import TargetGroup
from llmb.hosts.detached import cancel_detached, poll_detached
from llmb.hosts.free_space import free_space_gb, free_space_remedy
from llmb.hosts.local_host import LocalHost
from llmb.plan_runs import RunPlan
from llmb.plan_shared_tasks import TaskPlan
from llmb.state_machine.observations import OutOfSpace
from llmb.state_machine.units import RunsOn
from llmb.values.errors import TargetError
from llmb.values.host import Host
from llmb.values.job_status import JobHandle, JobStatus


def find_complete_tasks(tasks: Iterable[TaskPlan], host: Host) -> set[str]:
    """Run the checks of all tasks with one command. Return the keys of those that are complete. Raise TargetError."""
    lines = [f"if ({task.task.check}\n) >/dev/null 2>&1; then echo {shlex.quote(task.key)}; fi" for task in tasks]
    if not lines:
        return set()
    result = host.run("\n".join(lines))
    if result.exit_code:
        raise TargetError(f"cannot check which tasks are already complete: {result.stderr.strip()}")
    return set(result.stdout.splitlines())


def find_existing_items(plans: Iterable[RunPlan]) -> Mapping[str, bool]:
    """Check which shared tasks of runs on this machine are complete, by key. Nothing is started.

    Tasks on other hosts are left out, and so are all tasks if a check does not end.
    """
    tasks = {task.key: task for plan in plans if plan.target.host is None for task in plan.tasks}
    try:
        complete = find_complete_tasks(tasks.values(), LocalHost())
    except TargetError:
        return {}
    return {key: key in complete for key in tasks}


def tasks_without_secrets(tasks: Iterable[TaskPlan], group: TargetGroup) -> list[TaskPlan]:
    """Return the incomplete tasks for which a secret is missing. Raise TargetError."""
    lacking = [task for task in tasks if missing_secrets(task.script)]
    complete = find_complete_tasks(lacking, group.host)
    return [task for task in lacking if task.key not in complete]


def reject_without_space(tasks: Sequence[TaskPlan], group: TargetGroup) -> Iterator[tuple[TaskPlan, OutOfSpace]]:
    """Yield the tasks whose output does not fit on the target beside that of the tasks before. Raise TargetError."""
    if not any(task.task.space_gb for task in tasks):
        return
    free = left = free_space_gb(group.workdir, group.host)
    for task in tasks:
        needed = task.task.space_gb
        if needed > left:
            taken = "" if left == free else f", of which tasks that run now take {free - left:.1f} GB"
            reason = f"it needs {needed:g} GB in {group.workdir}, but only {free:.1f} GB are free{taken}"
            yield task, OutOfSpace(reason=reason, remedy=free_space_remedy(group.workdir))
        else:
            left -= needed


def poll_tasks(tasks: Iterable[TaskPlan], group: TargetGroup) -> Mapping[str, JobStatus]:
    """Return the status of each task's job, by key. Raise TargetError."""
    return poll_jobs(((task_handle(task), task.on) for task in tasks), group)


def poll_jobs(jobs: Iterable[tuple[JobHandle, RunsOn]], group: TargetGroup) -> Mapping[str, JobStatus]:
    """Query the scheduler once for all its jobs, and the host once for all its detached processes. Raise TargetError.

    Return the status of each job, by id.
    """
    on_host, on_scheduler = _split(jobs)
    found = dict(poll_detached(on_host, group.host)) if on_host else {}
    return found | (dict(group.scheduler.poll(handles=on_scheduler, host=group.host)) if on_scheduler else {})


def cancel_tasks(tasks: Iterable[TaskPlan], group: TargetGroup) -> None:
    """Cancel the jobs of tasks. Raise TargetError."""
    on_host, on_scheduler = _split((task_handle(task), task.on) for task in tasks)
    if on_host:
        cancel_detached(on_host, group.host)
    if on_scheduler:
        group.scheduler.cancel(handles=on_scheduler, host=group.host)


def task_handle(task: TaskPlan) -> JobHandle:
    """Return the handle by which a task's job is found."""
    return JobHandle(id=task.key, directory=task.script.directory)


def _split(jobs: Iterable[tuple[JobHandle, RunsOn]]) -> tuple[list[JobHandle], list[JobHandle]]:
    """Return the jobs of the host and those of the scheduler."""
    pairs = list(jobs)
    return [job for job, where in pairs if where == "host"], [job for job, where in pairs if where == "scheduler"]
