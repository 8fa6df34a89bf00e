"""The jobs of shared tasks that nobody wants any more, since the runs that waited for them were cancelled."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from llmb.engine.active import ActiveRun
from llmb.engine.observe import Observer
from llmb.engine.record import RunRecord, all_records
from llmb.engine.site import Site
from llmb.values.errors import RecordError, TargetError

BEFORE = frozenset({"planned", "preparing"})
NAMED = 3  # as many other runs that wait for a task are named


def end_unwanted(cancelled: Sequence[ActiveRun], runs: Iterable[ActiveRun], site: Site, observer: Observer) -> None:
    """End the job of each task that a cancelled run waited for, unless another run wants it; people are told.

    ``runs`` are all of this process on the site, of which none may need the task. Runs of other processes are known by
    their records, where one that waits for a task names it before the task is begun. A site that cannot be asked holds
    up no cancelling. Raises RecordError.
    """
    kinds = {task.key: task.task.kind for run in cancelled for task in run.planned.tasks if task.key == run.task}
    own = {run.run.id for run in cancelled}
    others = [run for run in runs if run.run.id not in own and not run.ended and not run.record.cancel_requested]
    keys = kinds.keys() - {task.key for run in others for task in run.planned.tasks}
    if not keys:
        return
    try:
        alive = site.alive(keys)
        waiting = _waiting(own, site)
        site.end(keys - waiting.keys(), alive)
    except TargetError as error:
        observer.message(f"{', '.join(kinds[key] for key in keys)} may go on on {site.name}: {error}")
        return
    for key, status in alive.items():
        job = f"{kinds[key]} (job {status.job_id})" if status.job_id else kinds[key]
        observer.message(f"{job} {_what_becomes_of_it(waiting.get(key, ()))}")


def _what_becomes_of_it(waiting: Sequence[str]) -> str:
    if not waiting:
        return "is ended too: no other run waits for it"
    more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    return f"goes on for {', '.join(waiting[:NAMED])}{more}; it ends where `llmb cancel` ends these too"


def _waiting(but: Container[str], site: Site) -> Mapping[str, Sequence[str]]:
    """The ids of the runs that wait for each task in the site's work directory, without these."""
    waiting: dict[str, list[str]] = {}
    for record in all_records():
        if record.run_id in but or record.cancel_requested:
            continue
        with suppress(RecordError):  # what cannot be read cannot be driven either
            known = record.state()
            if known["state"] in BEFORE and "task" in known and _place(record) == (site.host_name, site.workdir):
                waiting.setdefault(known["task"], []).append(record.run_id)
    return waiting


def _place(record: RunRecord) -> tuple[Any, Any]:
    """Host and work directory: tasks of one key are made in each."""
    target = record.spec().get("target", {})
    return target.get("host"), target.get("workdir")
