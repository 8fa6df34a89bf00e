"""Admission: which runs of a target group may be submitted now, given their tasks and the jobs of other runs.

At most ``target.max_jobs`` runs of a sweep have a job, whichever processes drive these runs.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import attrs

from llmb.drive.driven_run import JobLimit
from llmb.drive.effects import EffectRunner
from llmb.drive.isolate_errors import isolate
from llmb.drive.target_errors import first_ids
from llmb.drive.unit_table import UnitTable
from llmb.records.lock_file import lock_file
from llmb.records.record import RunRecord, runs_folder
from llmb.state_machine.observations import Observation, UnitObservation
from llmb.state_machine.states import HAS_JOB, NOT_SUBMITTED, Unit
from llmb.values.errors import RecordError
from llmb.values.texts.error_text import NAMED_RUNS, first_names


@attrs.frozen
class _Claim:
    """Runs that cannot be submitted now.

    ``later`` are decided later, ``denied`` have no free slot, each with the reason, and ``errors`` cannot be counted.
    """

    later: set[str]
    denied: dict[str, str]
    errors: dict[str, RecordError]


@attrs.define
class _Slots:
    """The free slots of a sweep while its file is locked, and the runs that take some of them.

    ``unfollowed`` are runs with a slot that this process does not follow.
    """

    limit: JobLimit
    descriptor: int
    free: int
    unfollowed: list[str]
    taken: list[str] = attrs.field(factory=list)

    def take(self, run_id: str) -> bool:
        """Take a slot for the run. Return False if none is free."""
        if self.free <= len(self.taken):
            return False
        self.taken.append(run_id)
        return True

    def write(self) -> None:
        """Append the runs that took a slot to the file, and sync it. Readers ignore blank lines and a torn line."""
        lines = "".join(["\n", *(f"{run_id}\n" for run_id in self.taken)]).encode()
        while lines:
            lines = lines[os.write(self.descriptor, lines) :]
        os.fsync(self.descriptor)


class Admission:
    """Shows the runs the states of their tasks, so that some become ready to be submitted.

    ``more`` is True if other runs could be admitted immediately. ``without_slot`` contains the runs that wait because
    of ``target.max_jobs``, each with the reason.
    """

    def __init__(self, runner: EffectRunner, units: UnitTable) -> None:
        self.more = False
        self.without_slot: dict[str, str] = {}
        self._runner = runner
        self._units = units
        self._ended: set[str] = set()  # runs of the sweeps, whose records are not read again
        self._explained: set[JobLimit] = set()

    @contextmanager
    def observe(self, most: int) -> Iterator[list[UnitObservation]]:
        """Yield what the runs see of their tasks. At most ``most`` runs may be submitted.

        The caller records what follows from it within the block, so that no other process counts jobs meanwhile.
        """
        runs = [unit for unit, state in self._units.driven() if state.stage in NOT_SUBMITTED]
        ready = [unit.id for unit in runs if self._units.tasks_are_complete(unit)]
        with ExitStack() as locks:
            claim = self._claim_slots(ready, most, locks)
            self.more = bool(claim.later)
            self.without_slot = claim.denied
            yield [(unit, self._see(unit, claim)) for unit in runs if unit.id not in claim.later]

    def _see(self, unit: Unit, claim: _Claim) -> Observation | Exception:
        if error := claim.errors.get(unit.id):
            return error
        may_submit = unit.id not in claim.denied
        return isolate(partial(self._runner.see_dependencies, unit, self._units.states, may_submit=may_submit))

    def _claim_slots(self, ready: Sequence[str], most: int, locks: ExitStack) -> _Claim:
        """Claim slots for at most ``most`` of these runs, and hold the locks of their sweeps."""
        sweeps: dict[JobLimit, _Slots | RecordError | None] = {}
        admitted: set[str] = set()
        denied: dict[str, str] = {}
        errors: dict[str, RecordError] = {}
        for run_id in ready:
            if len(admitted) == most:
                break
            limit = self._runner.runs[run_id].job_limit
            if limit is None:
                admitted.add(run_id)
                continue
            if limit not in sweeps:
                sweeps[limit] = self._open(limit, locks)
            match sweeps[limit]:  # None: another process holds the lock, so that the run is decided later
                case RecordError() as error:
                    errors[run_id] = error
                case _Slots() as slots if slots.take(run_id):
                    admitted.add(run_id)
                case _Slots() as slots:
                    denied[run_id] = f"waits (max_jobs = {limit.most})"
                    self._explain(run_id, slots)
        errors |= _write_slots(sweeps.values())
        return _Claim(set(ready) - admitted - denied.keys() - errors.keys(), denied, errors)

    def _open(self, limit: JobLimit, locks: ExitStack) -> _Slots | RecordError | None:
        """Lock and return the slots of a sweep. Return None while another process holds the lock."""
        try:
            limit.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = lock_file(limit.file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if descriptor is None:
                return None
            locks.callback(os.close, descriptor)
            holders = set(limit.file.read_text(encoding="utf-8", errors="replace").split("\n")) - {""}
            holders = {each for each in holders if self._has_job(each)}
            return _Slots(limit, descriptor, limit.most - len(holders), sorted(holders - self._runner.runs.keys()))
        except OSError as error:
            return _slots_error(limit, error)
        except RecordError as error:
            return error

    def _explain(self, run_id: str, slots: _Slots) -> None:
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
        run = self._runner.runs.get(run_id)  # no other process changes a run that this process has locked
        is_locked = run is not None and run.record.locked
        state = self._units.states[run_id] if is_locked else RunRecord(runs_folder() / run_id).state()
        if state.stage == "ended":
            self._ended.add(run_id)
        return state.stage in HAS_JOB


def _write_slots(sweeps: Iterable[_Slots | RecordError | None]) -> dict[str, RecordError]:
    """Write which runs took a slot. Return the runs of sweeps whose file could not be written, with the error."""
    errors: dict[str, RecordError] = {}
    for slots in sweeps:
        if isinstance(slots, _Slots) and slots.taken:
            try:
                slots.write()
            except OSError as error:
                errors |= dict.fromkeys(slots.taken, _slots_error(slots.limit, error))
    return errors


def _slots_error(limit: JobLimit, error: OSError) -> RecordError:
    reason = error.strerror or str(error)
    return RecordError(f"cannot count the jobs of the sweep in {limit.file}: {reason}; fix this, then `llmb attach`")
