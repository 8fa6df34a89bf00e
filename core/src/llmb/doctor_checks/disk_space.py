"""Checks of the images and data sets that runs need, and of the disk space for those that are missing."""

from collections.abc import Iterable, Iterator

from llmb.drive.target_group import TargetGroup
from llmb.hookspecs import DoctorCheck
from llmb.hosts.disk_space import free_space_gb, free_space_remedy
from llmb.planning import TaskPlan


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
