"""The effect runner of a target. Only this module, `task_effects` and `task_jobs` submit, poll and cancel.

Each method serves many units with a few commands, however many they are, and yields what was observed of each. Every
effect may be repeated, because a killed process leaves no note of the effects that it finished.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from llmb.drive.finalize.finalize_runs import RunFinalizer
from llmb.drive.finalize.remedy_of_run import describe_rejection
from llmb.drive.follow_logs import LogFollower
from llmb.drive.runs_and_tasks import RunsAndTasks
from llmb.drive.secrets import SecretFiles, certainly_not_submitted, mask_reasons, missing_secrets
from llmb.drive.shared_tasks.task_effects import TaskEffects
from llmb.drive.shared_tasks.task_jobs import poll_jobs, task_handle
from llmb.drive.target_group import TargetGroup
from llmb.plugins.registry import PluginRegistry
from llmb.state_machine.observations import (
    CancelDone,
    SecretsMissing,
    UnitObservation,
)
from llmb.state_machine.units import NOT_SUBMITTED, State, Unit, UnitStates
from llmb.values.errors import TargetError
from llmb.values.job_status import JobHandle, JobStatus


class EffectRunner:
    """Performs effects for the runs of one target group, and for the ``tasks`` that they share.

    ``units`` has the states of runs and tasks, which effects do not change. ``notes`` collects sentences for the user.
    """

    def __init__(self, group: TargetGroup, units: RunsAndTasks, registry: PluginRegistry) -> None:
        self.group = group
        self.units = units
        self.notes: list[str] = []
        self.tasks = TaskEffects(group, units, self.notes)
        self.log_follower = LogFollower(units.runs, group.host, self.notes)
        self._secrets = SecretFiles(group.host, self.notes)
        self.finalizer = RunFinalizer(group, units.runs, registry, self._secrets, self.notes, self.log_follower)
        self._unanswered: set[str] = set()  # runs whose submission had no certain answer

    def poll(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Query the scheduler once for all jobs, and the host once for all detached tasks. Raise TargetError."""
        found = poll_jobs(((self._handle(*each), each.unit.runs_on) for each in units), self.group)
        yield from mask_reasons((unit, found[unit.id], self.units.script(unit)) for unit, _ in units)

    def cancel(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Cancel jobs, once for each request of the user. Raise TargetError."""
        self._secrets.remove(self.units.runs[unit.id].plan.script for unit, _ in units)
        self.group.scheduler.cancel(handles=[self._handle(*each) for each in units], host=self.group.host)
        yield from ((unit, CancelDone(state.cancel_requested_ns)) for unit, state in units)

    def submit(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Submit tasks, then runs. What was submitted before is not submitted again. Raise TargetError."""
        if tasks := [each for each in units if each.unit.kind == "task"]:
            yield from self.tasks.submit(tasks)
        runs = [each for each in units if each.unit.kind == "run"]
        lacking = [each for each in runs if missing_secrets(self.units.runs[each.unit.id].plan.script)]
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
        scripts = [self.units.runs[unit.id].plan.script for unit in units]
        try:
            self._secrets.put(scripts)
            handles = self.group.scheduler.submit(scripts=scripts, host=self.group.host)
        except BaseException as error:
            if certainly_not_submitted(error):
                with suppress(TargetError):  # the user sees the first error
                    self._secrets.remove(script for script in scripts if self.is_not_submitted(script.id))
            else:
                self._unanswered.update(script.id for script in scripts)
            raise
        for unit in units:
            handle = handles[unit.id]
            if handle.refused:
                run = self.units.runs[unit.id]
                self.notes.append(f"{unit.id}: {describe_rejection(handle, run.plan, run.record)}")
            yield unit, handle

    def is_not_submitted(self, run_id: str) -> bool:
        """Check whether a run was certainly not submitted, by this process or another."""
        stage = self.units.states[run_id].stage
        has_no_job = run_id in self.units.submitting_here and run_id not in self._unanswered
        return stage in NOT_SUBMITTED or (stage == "submitting" and has_no_job)

    def finalize(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Complete what remains after a job: cancel jobs that never start, read logs to their end, remove secrets.

        Runs get their result, unless the history of their job is not complete yet. Tasks are checked.
        """
        new = [each for each in units if not self.finalizer.is_waiting(each.unit.id)]
        never = [self._handle(*each) for each in new if each.state.job_status and each.state.job_status.unsatisfiable]
        if never:
            self.group.scheduler.cancel(handles=never, host=self.group.host)
        if runs := [each for each in units if each.unit.kind == "run"]:
            refused = [each for each in runs if each.state.job_status and each.state.job_status.cause == "refused"]
            self.tasks.release(refused)
            yield from self.finalizer.finalize(runs)
        if tasks := [each for each in units if each.unit.kind == "task"]:
            yield from self.tasks.finalize(tasks)

    def _handle(self, unit: Unit, state: State) -> JobHandle:
        if unit.kind == "task":
            return task_handle(self.units.task_plans[unit.id])
        return self.units.runs[unit.id].handle(state)
