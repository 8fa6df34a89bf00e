"""The key ``target.max_jobs``: how many runs of a sweep may have a job, counted in a file that all processes share."""

import os
from collections.abc import Callable, Container, Iterable
from contextlib import ExitStack
from pathlib import Path

import attrs

from llmb.files import lock_file
from llmb.paths import home_folder
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


@attrs.define
class JobSlots:
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


def lock_slots(
    limit: JobLimit, locks: ExitStack, has_job: Callable[[str], bool], followed: Container[str]
) -> JobSlots | RecordError | None:
    """Lock and return the slots of a sweep until ``locks`` ends. Return None while another process holds the lock.

    A run holds its slot as long as it has a job. ``followed`` are the runs that this process follows.
    """
    try:
        limit.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = lock_file(limit.file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if descriptor is None:
            return None
        locks.callback(os.close, descriptor)
        named = set(limit.file.read_text(encoding="utf-8", errors="replace").split("\n")) - {""}
        holders = sorted(run_id for run_id in named if has_job(run_id))
        unfollowed = [run_id for run_id in holders if run_id not in followed]
        return JobSlots(limit, descriptor, limit.most - len(holders), unfollowed)
    except OSError as error:
        return _slots_error(limit, error)
    except RecordError as error:
        return error


def write_slots(sweeps: Iterable[JobSlots | RecordError | None]) -> dict[str, RecordError]:
    """Write which runs took a slot. Return the runs of sweeps whose file could not be written, with the error."""
    errors: dict[str, RecordError] = {}
    for slots in sweeps:
        if isinstance(slots, JobSlots) and slots.taken:
            try:
                slots.write()
            except OSError as error:
                errors |= dict.fromkeys(slots.taken, _slots_error(slots.limit, error))
    return errors


def _slots_error(limit: JobLimit, error: OSError) -> RecordError:
    reason = error.strerror or str(error)
    return RecordError(f"cannot count the jobs of the sweep in {limit.file}: {reason}; fix this, then `llmb attach`")
