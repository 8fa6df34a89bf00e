"""Checks of the work directory: its rights, the items that runs need, and the space for those that are missing."""

import shlex
from collections.abc import Iterable, Iterator

from llmb.drive.target_group import TargetGroup
from llmb.hookspecs import DoctorCheck
from llmb.hosts.disk_space import EXISTING_PARENT, free_space_gb, free_space_remedy
from llmb.hosts.work_directory import access_check
from llmb.task_plans import TaskPlan


def check_work_directory(group: TargetGroup) -> DoctorCheck:
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
    return DoctorCheck(name="work directory", ok=True, detail=f"{workdir}{created}, {free_gb:.0f} GB free")


def check_disk_space(tasks: Iterable[TaskPlan], complete: set[str], group: TargetGroup) -> Iterator[DoctorCheck]:
    """Yield a check for each item that the runs need, and one for the space of the missing items."""
    needed_gb = 0.0
    for task in tasks:
        if task.key in complete:
            yield DoctorCheck(name=task.task.kind, ok=True, detail=f"{task.key} exists")
        else:
            size = f", {task.task.space_gb:g} GB" if task.task.space_gb else ""
            yield DoctorCheck(name=task.task.kind, ok=True, detail=f"{task.key} will be created first{size}")
            needed_gb += task.task.space_gb
    if not needed_gb:
        return
    free_gb = free_space_gb(group.workdir, group.host)
    detail = f"{needed_gb:g} GB needed in {group.workdir}, {free_gb:.1f} GB free"
    remedy = free_space_remedy(group.workdir) if needed_gb > free_gb else ""
    yield DoctorCheck(name="free space", ok=not remedy, detail=detail, remedy=remedy)
