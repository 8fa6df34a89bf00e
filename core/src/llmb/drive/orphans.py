"""The jobs of shared tasks that nobody wants any more, since the runs that waited for them were cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llmb.drive.active import ActiveRun
from llmb.drive.observe import Observer
from llmb.drive.site import Site
from llmb.values.errors import TargetError

BEFORE = frozenset({"planned", "preparing"})
NAMED = 3  # as many other runs that wait for a task are named


def cancel_orphaned_tasks(
    cancelled: Sequence[ActiveRun], runs: Iterable[ActiveRun], site: Site, observer: Observer
) -> None:
    """End the job of each task that a cancelled run waited for, unless another run wants it; people are told.

    ``runs`` are all of this process on the site, of which none may need the task. Runs of other processes have noted on
    the target that they wait. A site that cannot be asked holds up no cancelling.
    """
    kinds = {task.key: task.task.kind for run in cancelled for task in run.planned.tasks if task.key == run.task}
    own = {run.run.id for run in cancelled}
    others = [run for run in runs if run.run.id not in own and not run.ended and not run.record.cancel_requested]
    keys = kinds.keys() - {task.key for run in others for task in run.planned.tasks}
    if not kinds:
        return
    try:
        waiting = site.list_references(kinds, own)
        alive = site.alive(keys)
        site.end(keys - waiting.keys(), alive)
    except TargetError as error:
        observer.message(f"{', '.join(kinds.values())} may go on on {site.name}: {error}")
        return
    for key, status in alive.items():
        job = f"{kinds[key]} (job {status.job_id})" if status.job_id else kinds[key]
        observer.message(f"{job} {_what_becomes_of_it(waiting.get(key, ()))}")


def _what_becomes_of_it(waiting: Sequence[str]) -> str:
    if not waiting:
        return "is ended too: no other run waits for it"
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    return f"goes on for {', '.join(waiting[:NAMED])}{more}; it ends where `llmb cancel` ends these too"
