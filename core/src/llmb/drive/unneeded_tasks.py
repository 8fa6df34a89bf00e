"""The shared tasks of cancelled runs: a task's job is cancelled only if no other run waits for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llmb.drive.target_group import TargetGroup
from llmb.drive.task_jobs import cancel_tasks, poll_tasks
from llmb.drive.waiting_runs import list_references
from llmb.task_plans import TaskPlan
from llmb.values.error_text import first_runs


def cancel_unneeded_tasks(
    plans: Sequence[TaskPlan], run_ids: Sequence[str], needed: Collection[str], group: TargetGroup
) -> tuple[list[TaskPlan], list[str]]:
    """Drop the references of cancelled runs to these tasks, and cancel the jobs of tasks that no other run needs.

    ``needed`` are the keys of tasks that other runs of this process need. Return the tasks that no run needs, and a
    note about each job. Raise TargetError.
    """
    waiting = list_references((plan.script for plan in plans), run_ids, group.host)
    candidates = [plan for plan in plans if plan.key not in needed]
    statuses = poll_tasks(candidates, group)
    alive = [plan for plan in candidates if statuses[plan.key].state in ("pending", "running")]
    unneeded = [plan for plan in candidates if plan.key not in waiting]
    cancel_tasks([plan for plan in unneeded if plan in alive], group)
    notes = []
    for plan in alive:
        job_id = statuses[plan.key].job_id
        job = f"{plan.task.kind} (job {job_id})" if job_id else plan.task.kind
        notes.append(f"{job} {_describe_decision(waiting.get(plan.key, ()))}")
    return unneeded, notes


def _describe_decision(waiting: Sequence[str]) -> str:
    if not waiting:
        return "is cancelled too: no other run waits for it"
    return f"continues for {', '.join(first_runs(waiting))}; `llmb cancel` of these runs also cancels it"
