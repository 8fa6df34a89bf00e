"""Checks of a target for ``llmb doctor``: its host, its work directory, and what its scheduler checks."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs

from llmb.doctor_checks.host_commands import check_commands
from llmb.drive.target_group import TargetGroup
from llmb.hookspecs import DoctorCheck
from llmb.hosts.free_space import EXISTING_PARENT, free_space_gb, free_space_remedy
from llmb.hosts.host_connections import HostConnections
from llmb.hosts.work_directory import access_check
from llmb.plan_shared_tasks import TaskPlan
from llmb.plugins.registry import PluginRegistry
from llmb.state_machine.decide_task import MISSING
from llmb.values.errors import LlmbError, PluginError
from llmb.values.job import Script
from llmb.values.run import Target


@contextmanager
def opened_target(target: Target[Any], registry: PluginRegistry) -> Iterator[TargetGroup]:
    """Connect to a target for the complete probe of its scheduler, which runs leave out. Raise TargetError."""
    complete = attrs.evolve(target, gpu_types=())
    with closing(HostConnections()) as hosts:
        yield TargetGroup(registry.scheduler(target.scheduler), hosts.host_of(complete), [complete])


def probe_target(group: TargetGroup) -> list[DoctorCheck]:
    """Probe a target, and return the checks of its host and its work directory. Raise TargetError."""
    commands = [*check_commands(group.host, group.name, remote=group.remote)]
    warnings = group.probe()
    checks = [DoctorCheck(name="reachable", ok=True, detail=group.name)]
    checks += [DoctorCheck(name="probe", ok=False, detail=line) for line in warnings]
    return [*checks, *commands, _check_work_directory(group)]


def _check_work_directory(group: TargetGroup) -> DoctorCheck:
    """Check whether the directory of all runs can be created and written, without creating it."""
    workdir = group.workdir
    script = (
        f'folder={shlex.quote(workdir)}\n{EXISTING_PARENT}\nprintf %s "$folder"; [ -d "$folder" ] && [ -w "$folder" ]'
    )
    access = group.host.run(access_check(workdir, shared=group.shared))
    if access.exit_code:
        reason, _, remedy = access.stderr.strip().partition("; ")
        return DoctorCheck(name="work directory", ok=False, detail=reason, remedy=remedy)
    found = group.host.run(script)
    if found.exit_code:
        remedy = 'set `workdir = "/path/to/folder"` in [target]: a folder that you can write and that all nodes share'
        return DoctorCheck(name="work directory", ok=False, detail=f"cannot write {workdir}", remedy=remedy)
    created = "" if found.stdout == workdir else f" will be created in {found.stdout}"
    free_gb = free_space_gb(workdir, group.host)
    detail = f"{workdir}{created}, {free_gb:.0f} GB free"
    remedy = "" if round(free_gb) else free_space_remedy(found.stdout)
    return DoctorCheck(name="work directory", ok=not remedy, detail=detail, remedy=remedy)


def check_scheduler(group: TargetGroup, target: Target[Any], scripts: Sequence[Script] = ()) -> list[DoctorCheck]:
    """Return the scheduler's checks of a target with facts. ``scripts`` are the jobs to submit there, if known."""
    try:
        return list(group.scheduler.checks(target=target, host=group.host, scripts=scripts))
    except PluginError as error:
        return [DoctorCheck(name="plugin", ok=False, detail=one_line(error))]


def check_disk_space(tasks: Iterable[TaskPlan], complete: set[str], group: TargetGroup) -> Iterator[DoctorCheck]:
    """Yield a check for each item that the runs need, and one for the space of the missing items."""
    needed_gb = 0.0
    for task in tasks:
        if not task.task.work:
            yield _check_existence(task, exists=task.key in complete)
            continue
        detail = f"{task.key} exists"
        if task.key not in complete:
            size = f", {task.task.space_gb:g} GB" if task.task.space_gb else ""
            detail = f"{task.key} will be created first{size}"
            needed_gb += task.task.space_gb
        yield DoctorCheck(name=task.task.kind, ok=True, detail=detail)
    if not needed_gb:
        return
    free_gb = free_space_gb(group.workdir, group.host)
    detail = f"{needed_gb:g} GB needed in {group.workdir}, {free_gb:.1f} GB free"
    remedy = free_space_remedy(group.workdir) if needed_gb > free_gb else ""
    yield DoctorCheck(name="free space", ok=not remedy, detail=detail, remedy=remedy)


def _check_existence(task: TaskPlan, *, exists: bool) -> DoctorCheck:
    """Check a result that only the user can create."""
    detail, remedy = ("exists", "") if exists else (MISSING, "create it, or correct the spec")
    return DoctorCheck(name=task.task.kind, ok=exists, detail=detail, remedy=remedy)


def one_line(error: LlmbError) -> str:
    """Return all errors in one line."""
    return "; ".join(map(str, error.faults))
