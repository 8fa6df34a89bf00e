"""Effects for the shared tasks of one target: checks, submission, their end, and the runs that wait for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.drive.secrets import SecretFiles, certainly_not_submitted, missing_secrets
from llmb.drive.shared_tasks.runs_waiting_for_task import add_references, list_references, remove_references
from llmb.drive.shared_tasks.task_failure import find_task_failure
from llmb.drive.shared_tasks.task_jobs import (
    cancel_tasks,
    find_complete_tasks,
    poll_tasks,
    reject_without_space,
)
from llmb.drive.target_group import TargetGroup
from llmb.hosts.detached import submit_detached
from llmb.plan_shared_tasks import TaskPlan
from llmb.state_machine.observations import (
    Checked,
    ReferencesDropped,
    SecretsMissing,
    TaskFinalized,
    UnitObservation,
    Unneeded,
)
from llmb.state_machine.units import UnitStates
from llmb.values.errors import LlmbError, TargetError
from llmb.values.job_status import JobHandle
from llmb.values.texts.error_text import NAMED_RUNS, first_names


class TaskEffects:
    """Performs effects for shared tasks. ``notes`` collects sentences for the user."""

    def __init__(self, group: TargetGroup, units: RunsAndTasks, notes: list[str]) -> None:
        self.failed_logs: dict[str, str] = {}
        """The end of the log of each task that failed."""
        self._group = group
        self._units = units
        self._plans = units.task_plans
        self._notes = notes
        self._secrets = SecretFiles(group.host, notes)
        self._references: set[tuple[str, str]] = set()  # task and run, as noted on the target by this process

    def check(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Check which tasks are complete. A complete task keeps no secrets of a process that was killed."""
        plans = [self._plans[unit.id] for unit, _ in units]
        complete = find_complete_tasks(plans, self._group.host)
        self._secrets.remove(plan.script for plan in plans if plan.key in complete)
        yield from ((unit, Checked(unit.id in complete)) for unit, _ in units)

    def submit(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Submit tasks. One that lacks a secret or space is not submitted. Raise TargetError."""
        by_key = {unit.id: unit for unit, _ in units}
        plans = []
        for plan in (self._plans[key] for key in by_key):
            if missing_secrets(plan.script):
                yield by_key[plan.key], SecretsMissing()
            else:
                plans.append(plan)
        for plan, rejected in list(reject_without_space(plans, self._group)):
            plans.remove(plan)
            yield by_key[plan.key], rejected
        for where in ("host", "scheduler"):  # an error of the second leaves the first submitted
            if group := [plan for plan in plans if plan.on == where]:
                handles = self._submit(where, group)
                self._secrets.remove(plan.script for plan in group if handles[plan.key].refused)
                yield from ((by_key[plan.key], handles[plan.key]) for plan in group)

    def _submit(self, where: str, plans: Sequence[TaskPlan]) -> Mapping[str, JobHandle]:
        scripts = [plan.script for plan in plans]
        try:
            self._secrets.put(scripts)
            if where == "host":
                return submit_detached(scripts, self._group.host)
            return self._group.scheduler.submit(scripts=scripts, host=self._group.host)
        except LlmbError as error:
            if certainly_not_submitted(error):
                with suppress(TargetError):  # the user sees the first error
                    self._take_back_secrets(plans)
            raise

    def _take_back_secrets(self, plans: Iterable[TaskPlan]) -> None:
        """Remove the secrets of tasks that no job and no other process needs.

        A process for whose runs there are references may just have placed the same secrets, and be about to submit.
        """
        plans = [plan for plan in plans if plan.script.secrets]
        waiting = list_references((plan.script for plan in plans), (), self._group.host) if plans else {}
        mine = {run_id for _, run_id in self._references}
        plans = [plan for plan in plans if mine.issuperset(waiting.get(plan.key, ()))]
        found = poll_tasks(plans, self._group)
        gone = [plan for plan in plans if found[plan.key].state in ("absent", "ended")]
        self._secrets.remove(plan.script for plan in gone)

    def finalize(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Check the tasks whose jobs are over, and describe why the others failed. Raise TargetError."""
        plans = [self._plans[unit.id] for unit, _ in units]
        self._secrets.remove(plan.script for plan in plans)
        complete = find_complete_tasks(plans, self._group.host)
        for unit, state in units:
            assert state.job_status
            if unit.id in complete:
                yield unit, TaskFinalized(complete=True)
                continue
            failure, log = find_task_failure(self._plans[unit.id], state.job_status, self._group.host)
            self.failed_logs[unit.id] = log
            yield unit, failure

    # The runs that wait for tasks

    def add_references(self) -> None:
        """Note on the target which runs wait for which tasks, each pair once. Raise TargetError."""
        if new := [pair for pair in self._units.awaited() if pair not in self._references]:
            add_references(((self._plans[key].script, run_id) for key, run_id in new), self._group.host)
            self._references.update(new)

    def remove_references(self) -> None:
        """Remove the references to tasks that ended. Raise TargetError.

        A task that failed here may still run for other processes, so their references stay.
        """
        endings = {key: ending for key in self._plans if (ending := self._units.states[key].ending)}
        over = [pair for pair in self._references if pair[0] in endings]
        pairs = ((key, "" if endings[key].state == "completed" else run_id) for key, run_id in over)
        remove_references(((self._plans[key].script, run_id) for key, run_id in dict.fromkeys(pairs)), self._group.host)
        self._references.difference_update(over)

    def drop_references(self, runs: UnitStates) -> Iterator[UnitObservation]:
        """Stop waiting for tasks, and cancel the jobs of tasks for which no run waits now.

        Runs of other processes left references on the target. A target that does not respond does not prevent
        cancelling.
        """
        plans = self._awaited_by(runs)
        unneeded: list[TaskPlan] = []
        try:
            if plans:
                unneeded += self._cancel_unneeded(plans, [unit.id for unit, _ in runs])
        except TargetError as error:
            names = ", ".join(plan.task.kind for plan in plans)
            self._notes.append(f"{names} may continue on {self._group.name}: {error}")
        yield from ((self._units.task_units[plan.key], Unneeded()) for plan in unneeded)
        yield from ((unit, ReferencesDropped()) for unit, _ in runs)

    def release(self, runs: UnitStates) -> None:
        """Stop waiting for the tasks of runs that were refused, and remove the secrets of tasks that no run needs.

        Raise TargetError if secrets may be left.
        """
        if not (plans := self._awaited_by(runs)):
            return
        needed = self._units.needed_tasks()
        try:
            waiting = list_references((plan.script for plan in plans), [unit.id for unit, _ in runs], self._group.host)
        except TargetError:
            if any(plan.script.secrets for plan in plans):
                raise
            return  # at worst, a later job of the task continues for no run
        self._secrets.remove(plan.script for plan in plans if plan.key not in waiting and plan.key not in needed)

    def _awaited_by(self, runs: UnitStates) -> list[TaskPlan]:
        """Return the tasks that these runs waited for last."""
        keys = dict.fromkeys(key for unit, state in runs for key in unit.tasks_beside(state.task))
        return [self._plans[key] for key in keys]

    def _cancel_unneeded(self, plans: Sequence[TaskPlan], run_ids: Sequence[str]) -> list[TaskPlan]:
        """Drop the references of these runs, and cancel the jobs of tasks for which no other run waits.

        Return the tasks that no run needs. Append a note about each job. Raise TargetError.
        """
        needed = self._units.needed_tasks()
        waiting = list_references((plan.script for plan in plans), run_ids, self._group.host)
        candidates = [plan for plan in plans if plan.key not in needed]
        statuses = poll_tasks(candidates, self._group)
        alive = [plan for plan in candidates if statuses[plan.key].state in ("pending", "running")]
        unneeded = [plan for plan in candidates if plan.key not in waiting]
        cancel_tasks([plan for plan in unneeded if plan in alive], self._group)
        self._secrets.remove(plan.script for plan in unneeded)
        for plan in alive:
            job_id = statuses[plan.key].job_id
            job = f"{plan.task.kind} (job {job_id})" if job_id else plan.task.kind
            self._notes.append(f"{job} {_describe_decision(waiting.get(plan.key, ()))}")
        return unneeded


def _describe_decision(waiting: Sequence[str]) -> str:
    if not waiting:
        return "is cancelled too: no other run waits for it"
    return f"continues for {first_names(waiting, NAMED_RUNS)}; `llmb cancel` of these runs also cancels it"
