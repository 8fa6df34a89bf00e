"""Admission: which runs of a target group may be submitted now, given their tasks and the jobs of other runs.

At most ``target.max_jobs`` runs of a sweep have a job, whichever processes drive these runs.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from llmb.drive.effects import EffectRunner
from llmb.drive.isolate_errors import isolate
from llmb.drive.max_jobs import JobLimit, JobSlots, lock_slots, write_slots
from llmb.drive.target_errors import first_ids
from llmb.drive.transitions import Transitions
from llmb.paths import runs_folder
from llmb.records.record import RunRecord
from llmb.state_machine.events import Event
from llmb.state_machine.observations import DependenciesSeen
from llmb.state_machine.units import HAS_JOB, NOT_SUBMITTED, Unit
from llmb.values.errors import RecordError
from llmb.values.texts.error_text import NAMED_RUNS, first_names

FIRST_BATCH = 16
"""Jobs of the first submission, so that the first one starts early."""

BATCH = 200
"""Jobs of each later submission."""


class Admission:
    """Decides which of the runs that wait become ready to be submitted.

    ``more`` is True if other runs could be admitted immediately. ``without_slot`` contains the runs that wait because
    of ``target.max_jobs``, each with the reason.
    """

    def __init__(self, runner: EffectRunner, transitions: Transitions) -> None:
        self.more = False
        self.without_slot: dict[str, str] = {}
        self._runner = runner
        self._units = runner.units
        self._transitions = transitions
        self._ended: set[str] = set()  # runs of the sweeps, whose records are not read again
        self._explained: set[JobLimit] = set()

    def admit(self, most: int) -> Iterator[Event]:
        """Record what the states of tasks mean for the runs. At most ``most`` runs become ready to be submitted.

        The sweeps stay locked until the events are recorded, so that no other process counts jobs meanwhile.
        """
        runs = [unit for unit, state in self._units.driven() if state.stage in NOT_SUBMITTED]
        ready = [unit.id for unit in runs if self._units.tasks_are_complete(unit)]
        with ExitStack() as locks:
            later, errors = self._claim_slots(ready, most, locks)
            self.more = bool(later)
            observed = [
                (unit, errors.get(unit.id) or isolate(partial(self._observe_tasks, unit)))
                for unit in runs
                if unit.id not in later
            ]
            events = list(self._transitions.record(observed))
        yield from events

    def _observe_tasks(self, unit: Unit) -> DependenciesSeen:
        """Return the states of the tasks of a run, and whether it may be submitted. Raise RecordError.

        The log of a task that failed is kept before the end of the run is recorded, so that a kill cannot lose it.
        """
        for key in unit.depends_on:
            ending, log = self._units.states[key].ending, self._runner.tasks.failed_logs.get(key)
            if ending and ending.state == "failed" and log:
                self._units.runs[unit.id].record.write_task_log(log.encode())
        names = {key: self._units.task_units[key].name for key in unit.depends_on}
        return DependenciesSeen(self._units.states, names, may_submit=unit.id not in self.without_slot)

    def _claim_slots(self, ready: list[str], most: int, locks: ExitStack) -> tuple[set[str], dict[str, RecordError]]:
        """Claim slots for at most ``most`` of these runs, and hold the locks of their sweeps. Set ``without_slot``.

        Return the runs that are decided later, and the errors of runs whose sweep cannot be counted.
        """
        sweeps: dict[JobLimit, JobSlots | RecordError | None] = {}
        admitted: set[str] = set()
        errors: dict[str, RecordError] = {}
        self.without_slot = {}
        for run_id in ready:
            if len(admitted) == most:
                break
            limit = self._units.runs[run_id].job_limit
            if limit is None:
                admitted.add(run_id)
                continue
            if limit not in sweeps:
                sweeps[limit] = lock_slots(limit, locks, self._has_job, self._units.runs)
            slots = sweeps[limit]
            if slots is None:
                continue  # another process holds the lock, so that the run is decided later
            if isinstance(slots, RecordError):
                errors[run_id] = slots
            elif slots.take(run_id):
                admitted.add(run_id)
            else:
                self.without_slot[run_id] = f"waits (max_jobs = {limit.most})"
                self._explain(run_id, slots)
        errors |= write_slots(sweeps.values())
        return set(ready) - admitted - self.without_slot.keys() - errors.keys(), errors

    def _explain(self, run_id: str, slots: JobSlots) -> None:
        """Note once for which runs of other processes a run waits: without a process, their slots never become free."""
        if slots.unfollowed and slots.limit not in self._explained:
            self._explained.add(slots.limit)
            ids, _ = first_ids(slots.unfollowed)
            named = first_names(slots.unfollowed, NAMED_RUNS)
            self._runner.notes.append(
                f"{run_id} waits for {named} (target.max_jobs = {slots.limit.most}); "
                f"if no other process follows these, run `llmb attach {ids}`"
            )

    def _has_job(self, run_id: str) -> bool:
        """Check whether a run of a sweep has a job. Raise RecordError."""
        if run_id in self._ended:
            return False
        run = self._units.runs.get(run_id)  # no other process changes a run that this process has locked
        is_locked = run is not None and run.record.locked
        state = self._units.states[run_id] if is_locked else RunRecord(runs_folder() / run_id).state()
        if state.stage == "ended":
            self._ended.add(run_id)
        return state.stage in HAS_JOB
