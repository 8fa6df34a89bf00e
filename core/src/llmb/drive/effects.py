"""The effect runner of a target. Only this module, `task_effects` and `task_jobs` submit, poll and cancel.

Each method serves many units with a few commands, however many they are, and yields what was observed of each. Every
effect may be repeated, because a killed process leaves no note of the effects that it finished.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from llmb.drive.finalize.finalize_runs import RunFinalizer
from llmb.drive.finalize.remedy_of_run import describe_rejection
from llmb.drive.follow_logs import LogFollower
from llmb.drive.runs_and_tasks import RunsAndTasks, task_unit
from llmb.drive.secrets import SecretFiles, certainly_not_submitted, mask_reasons, missing_secrets
from llmb.drive.session_run import SessionRun
from llmb.drive.shared_tasks.task_effects import TaskEffects
from llmb.drive.shared_tasks.task_jobs import poll_jobs, task_handle
from llmb.drive.target_group import TargetGroup
from llmb.plugins.registry import PluginRegistry
from llmb.state_machine.observations import (
    CancelDone,
    DependenciesSeen,
    ReferencesDropped,
    SecretsMissing,
    UnitObservation,
    Unneeded,
)
from llmb.state_machine.units import State, Unit, UnitStates
from llmb.values.errors import TargetError
from llmb.values.job import Script
from llmb.values.job_status import JobHandle, JobStatus


class EffectRunner:
    """Performs effects for the runs of one target group, and for the ``tasks`` that they share.

    ``units`` has the states of runs and tasks, which effects do not change. ``not_submitted`` contains runs that were
    certainly not submitted before. ``notes`` collects sentences for the user.
    """

    def __init__(self, group: TargetGroup, runs: Iterable[SessionRun], registry: PluginRegistry) -> None:
        self.group = group
        self.runs = {run.plan.run.id: run for run in runs}
        self.not_submitted: set[str] = set()
        self.notes: list[str] = []
        self.tasks = TaskEffects((task for run in self.runs.values() for task in run.plan.tasks), group, self.notes)
        self.units = RunsAndTasks(self.runs, self.tasks.plans)
        self._secrets = SecretFiles(group.host, self.notes)
        self.log_follower = LogFollower(self.runs, group.host, self.notes)
        self.finalizer = RunFinalizer(group, self.runs, registry, self._secrets, self.notes, self.log_follower)

    def poll(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Query the scheduler once for all jobs, and the host once for all detached tasks. Raise TargetError."""
        found = poll_jobs(((self._handle(*each), each.unit.runs_on) for each in units), self.group)
        yield from mask_reasons((unit, found[unit.id], self._script(unit)) for unit, _ in units)

    def cancel(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Cancel jobs, once for each request of the user. Raise TargetError."""
        self._secrets.remove(self.runs[unit.id].plan.script for unit, _ in units)
        self.group.scheduler.cancel(tickets=[self._handle(*each) for each in units], host=self.group.host)
        yield from ((unit, CancelDone(state.cancel_requested)) for unit, state in units)

    def drop_references(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Stop waiting for tasks, and cancel the jobs of tasks for which no run waits now.

        Runs of other processes left references on the target. A target that does not respond does not prevent
        cancelling.
        """
        needed = self.units.needed_tasks()
        keys = dict.fromkeys(key for unit, state in units for key in unit.tasks_beside(state.task))
        unneeded: list[str] = []
        try:
            if keys:
                unneeded += self.tasks.cancel_unneeded(keys, [unit.id for unit, _ in units], needed)
        except TargetError as error:
            names = ", ".join(self.tasks.plans[key].task.kind for key in keys)
            self.notes.append(f"{names} may continue on {self.group.name}: {error}")
        yield from ((task_unit(self.tasks.plans[key]), Unneeded()) for key in unneeded)
        yield from ((unit, ReferencesDropped()) for unit, _ in units)

    def observe_dependencies(self, unit: Unit, *, may_submit: bool) -> DependenciesSeen:
        """Return the states of the tasks of a run, and whether it may be submitted. Raise RecordError.

        The log of a task that failed is kept before the end of the run is recorded, so that a kill cannot lose it.
        """
        for key in unit.depends_on:
            ending, log = self.units.states[key].ending, self.tasks.failed_logs.get(key)
            if ending and ending.state == "failed" and log:
                self.runs[unit.id].record.write_task_log(log.encode())
        names = {key: self.tasks.plans[key].task.kind for key in unit.depends_on}
        return DependenciesSeen(self.units.states, names, may_submit=may_submit)

    def submit(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Submit tasks, then runs. What was submitted before is not submitted again. Raise TargetError."""
        if tasks := [each for each in units if each.unit.kind == "task"]:
            yield from self.tasks.submit(tasks)
        runs = [each for each in units if each.unit.kind == "run"]
        lacking = [each for each in runs if missing_secrets(self.runs[each.unit.id].plan.script)]
        if lacking:
            yield from self._find_jobs(lacking)
        left_out = {unit.id for unit, _ in lacking}
        if ready := [unit for unit, _ in runs if unit.id not in left_out]:
            yield from self._submit_runs(ready)

    def _find_jobs(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Query for jobs that cannot be submitted from here. One that exists already needs no secrets from here."""
        for unit, seen in list(self.poll(units)):
            absent = isinstance(seen, JobStatus) and seen.state == "absent"
            yield unit, SecretsMissing() if absent else seen

    def _submit_runs(self, units: Sequence[Unit]) -> Iterator[UnitObservation]:
        scripts = [self.runs[unit.id].plan.script for unit in units]
        try:
            self._secrets.put(scripts)
            handles = self.group.scheduler.submit(scripts=scripts, host=self.group.host)
        except BaseException as error:
            if certainly_not_submitted(error):
                with suppress(TargetError):  # the user sees the first error
                    self._secrets.remove(script for script in scripts if script.id in self.not_submitted)
            else:
                self.not_submitted.difference_update(script.id for script in scripts)
            raise
        for unit in units:
            handle = handles[unit.id]
            if handle.refused:
                run = self.runs[unit.id]
                self.notes.append(f"{unit.id}: {describe_rejection(handle, run.plan, run.record)}")
            yield unit, handle

    def finalize(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Complete what remains after a job: cancel jobs that never start, read logs to their end, remove secrets.

        Runs get their result, unless the history of their job is not complete yet. Tasks are checked.
        """
        new = [each for each in units if not self.finalizer.is_waiting(each.unit.id)]
        never = [self._handle(*each) for each in new if each.state.job_status and each.state.job_status.unsatisfiable]
        if never:
            self.group.scheduler.cancel(tickets=never, host=self.group.host)
        if runs := [each for each in units if each.unit.kind == "run"]:
            self._release_tasks(runs)
            yield from self.finalizer.finalize(runs)
        if tasks := [each for each in units if each.unit.kind == "task"]:
            yield from self.tasks.finalize(tasks)

    def _release_tasks(self, units: UnitStates) -> None:
        """Stop waiting for the tasks of runs that were refused. Raise TargetError if secrets of a task may be left."""
        refused = [(unit, state) for unit, state in units if state.job_status and state.job_status.cause == "refused"]
        if keys := dict.fromkeys(key for unit, state in refused for key in unit.tasks_beside(state.task)):
            self.tasks.release(keys, [unit.id for unit, _ in refused], self.units.needed_tasks())

    def _script(self, unit: Unit) -> Script:
        return self.tasks.plans[unit.id].script if unit.kind == "task" else self.runs[unit.id].plan.script

    def _handle(self, unit: Unit, state: State) -> JobHandle:
        if unit.kind == "task":
            return task_handle(self.tasks.plans[unit.id])
        return self.runs[unit.id].handle(state)
