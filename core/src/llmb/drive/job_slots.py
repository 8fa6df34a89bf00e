"""Job slots: at most ``target.max_jobs`` runs of a sweep have a job, whichever processes drive these runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from llmb.paths import home_folder
from llmb.records.lock_file import lock_file
from llmb.records.record import RunRecord, runs_folder
from llmb.state_machine.states import HAS_JOB, State
from llmb.values.errors import RecordError


@attrs.frozen
class JobLimit:
    """At most ``most`` runs of the sweep that begins with the run ``first_run`` may have a job."""

    first_run: str
    most: int

    @property
    def file(self) -> Path:
        """The file with the ids of all runs of the sweep that have had a slot. Its lock guards all slots."""
        return home_folder() / "sweeps" / self.first_run


@attrs.frozen
class Claim:
    """Runs that may be submitted, runs without a free slot, and runs whose slots could not be counted.

    The other runs have to be claimed again.
    """

    admitted: set[str] = attrs.field(factory=set)
    denied: set[str] = attrs.field(factory=set)
    errors: dict[str, RecordError] = attrs.field(factory=dict)


@attrs.frozen
class JobSlots:
    """Slots of runs with a ``target.max_jobs``. The limits are by run id; the other runs need no slot."""

    _limits: Mapping[str, JobLimit]
    _ended: set[str] = attrs.field(factory=set)

    def describe(self, run_id: str) -> str:
        """Return why a run with a limit waits for a slot."""
        return f"waits for other runs (target.max_jobs = {self._limits[run_id].most})"

    @contextmanager
    def claim(self, wanted: Sequence[str], known: Mapping[str, State], most: int) -> Iterator[Claim]:
        """Claim slots for at most ``most`` of these runs. Yield the runs that have one, and those that do not.

        ``known`` are the states of runs that this process has locked. Within the block, no other process claims slots
        of the same sweeps, so the caller records in the block that the jobs are about to be submitted.
        """
        claim = Claim()
        with ExitStack() as locks:
            opened: dict[JobLimit, _Slots | RecordError | None] = {}
            for run_id in wanted:
                if len(claim.admitted) == most:
                    break
                if (limit := self._limits.get(run_id)) is None:
                    claim.admitted.add(run_id)
                    continue
                if limit not in opened:
                    opened[limit] = self._open(limit, known, locks)
                slots = opened[limit]
                if isinstance(slots, RecordError):
                    claim.errors[run_id] = slots
                elif slots:
                    (claim.admitted if slots.take(run_id) else claim.denied).add(run_id)
            for limit, slots in opened.items():
                if isinstance(slots, _Slots) and (error := _write(limit, slots)):
                    claim.admitted.difference_update(slots.taken)
                    claim.errors.update(dict.fromkeys(slots.taken, error))
            yield claim

    def _open(self, limit: JobLimit, known: Mapping[str, State], locks: ExitStack) -> _Slots | RecordError | None:
        """Lock and return the slots of a sweep. Return None while another process holds the lock."""
        try:
            limit.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = lock_file(limit.file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if descriptor is None:
                return None
            locks.callback(os.close, descriptor)
            holders = set(limit.file.read_text(encoding="utf-8", errors="replace").split("\n")) - {""}
            return _Slots(descriptor, limit.most - sum(self._has_job(run_id, known) for run_id in holders))
        except OSError as error:
            return _slots_error(limit, error)
        except RecordError as error:
            return error

    def _has_job(self, run_id: str, known: Mapping[str, State]) -> bool:
        """Check whether a run has a job. Raise RecordError."""
        if run_id in self._ended:
            return False
        state = known[run_id] if run_id in known else RunRecord(runs_folder() / run_id).state()
        if state.stage == "ended":
            self._ended.add(run_id)
        return state.stage in HAS_JOB


@attrs.define
class _Slots:
    """The free slots of a sweep while its file is locked, and the runs that take some of them."""

    descriptor: int
    free: int
    taken: list[str] = attrs.field(factory=list)

    def take(self, run_id: str) -> bool:
        """Take a slot for the run. Return False if none is free."""
        if self.free <= 0:
            return False
        self.free -= 1
        self.taken.append(run_id)
        return True


def _write(limit: JobLimit, slots: _Slots) -> RecordError | None:
    """Append the runs that took a slot, and sync them. Readers ignore blank lines and a torn line."""
    if not slots.taken:
        return None
    lines = "".join(["\n", *(f"{run_id}\n" for run_id in slots.taken)]).encode()
    try:
        while lines:
            lines = lines[os.write(slots.descriptor, lines) :]
        os.fsync(slots.descriptor)
    except OSError as error:
        return _slots_error(limit, error)
    return None


def _slots_error(limit: JobLimit, error: OSError) -> RecordError:
    reason = error.strerror or str(error)
    return RecordError(f"cannot count the jobs of the sweep in {limit.file}: {reason}; fix this, then `llmb attach`")
