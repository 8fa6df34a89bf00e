"""Admission: which runs of a target group may be submitted now, given their tasks and the jobs of other runs.

At most ``target.max_jobs`` runs of a sweep have a job, whichever processes drive these runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import attrs

from llmb.drive.effects import EffectRunner
from llmb.drive.isolate_errors import isolate
from llmb.drive.max_jobs import JobLimit, JobSlots, lock_slots, write_slots
from llmb.drive.target_errors import first_ids
from llmb.paths import runs_folder
from llmb.records.record import RunRecord
from llmb.state_machine.observations import Observation, UnitObservation
from llmb.state_machine.units import HAS_JOB, NOT_SUBMITTED, Unit
from llmb.values.errors import RecordError
from llmb.values.texts.error_text import NAMED_RUNS, first_names

FIRST_BATCH = 16
"""Jobs of the first submission, so that the first one starts early."""

BATCH = 200
"""Jobs of each later submission."""


@attrs.frozen
class _Claim:
    """Runs that cannot be submitted now.

    ``later`` are decided later, ``denied`` have no free slot, each with the reason, and ``errors`` cannot be counted.
    """

    later: set[str]
    denied: dict[str, str]
    errors: dict[str, RecordError]


class Admission:
    """Observations of the runs that wait: the states of their tasks, and whether they may be submitted.

    ``more`` is True if other runs could be admitted immediately. ``without_slot`` contains the runs that wait because
    of ``target.max_jobs``, each with the reason.
    """

    def __init__(self, runner: EffectRunner) -> None:
        self.more = False
        self.without_slot: dict[str, str] = {}
        self._runner = runner
        self._units = runner.units
        self._ended: set[str] = set()  # runs of the sweeps, whose records are not read again
        self._explained: set[JobLimit] = set()

    @contextmanager
    def observe(self, most: int) -> Iterator[list[UnitObservation]]:
        """Yield the observations of the runs that wait. At most ``most`` runs may be submitted.

        The caller records what follows from them within the block, so that no other process counts jobs meanwhile.
        """
        runs = [unit for unit, state in self._units.driven() if state.stage in NOT_SUBMITTED]
        ready = [unit.id for unit in runs if self._units.tasks_are_complete(unit)]
        with ExitStack() as locks:
            claim = self._claim_slots(ready, most, locks)
            self.more = bool(claim.later)
            self.without_slot = claim.denied
            yield [(unit, self._observe_run(unit, claim)) for unit in runs if unit.id not in claim.later]

    def _observe_run(self, unit: Unit, claim: _Claim) -> Observation | Exception:
        if error := claim.errors.get(unit.id):
            return error
        may_submit = unit.id not in claim.denied
        return isolate(partial(self._runner.observe_dependencies, unit, may_submit=may_submit))

    def _claim_slots(self, ready: Sequence[str], most: int, locks: ExitStack) -> _Claim:
        """Claim slots for at most ``most`` of these runs, and hold the locks of their sweeps."""
        sweeps: dict[JobLimit, JobSlots | RecordError | None] = {}
        admitted: set[str] = set()
        denied: dict[str, str] = {}
        errors: dict[str, RecordError] = {}
        for run_id in ready:
            if len(admitted) == most:
                break
            limit = self._units.runs[run_id].job_limit
            if limit is None:
                admitted.add(run_id)
                continue
            if limit not in sweeps:
                sweeps[limit] = lock_slots(limit, locks, self._has_job, self._units.runs)
            match sweeps[limit]:  # None: another process holds the lock, so that the run is decided later
                case RecordError() as error:
                    errors[run_id] = error
                case JobSlots() as slots if slots.take(run_id):
                    admitted.add(run_id)
                case JobSlots() as slots:
                    denied[run_id] = f"waits (max_jobs = {limit.most})"
                    self._explain(run_id, slots)
        errors |= write_slots(sweeps.values())
        return _Claim(set(ready) - admitted - denied.keys() - errors.keys(), denied, errors)

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
