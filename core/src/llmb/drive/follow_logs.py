"""Reading what is new in the logs of runs, for all runs of a target with one command."""

from collections.abc import Iterable, Iterator, Mapping

from llmb.drive.isolate_errors import keep_error
from llmb.drive.read_files import read_files
from llmb.drive.session_run import SessionRun
from llmb.values.host import Host


class LogFollower:
    """Copies the logs of runs on ``host``. ``notes`` collects sentences for the user.

    ``unreadable`` contains the runs whose logs could not be read. They are read alone, because one file that cannot be
    read fails the command for all runs.
    """

    def __init__(self, runs: Mapping[str, SessionRun], host: Host, notes: list[str]) -> None:
        self.unreadable: set[str] = set()
        self._runs = runs
        self._host = host
        self._notes = notes

    def read(self, run_ids: Iterable[str], *, is_last: bool = False) -> Iterator[tuple[str, Exception | None]]:
        """Append what is new in the logs of these runs to their copies. Raise TargetError if the host does not respond.

        Yield each run whose copies have grown, and each run whose copies could not be written, with the error. Without
        ``is_last``, a possible beginning of a secret at the end of a log is left for a later call.
        """
        offsets: dict[str, Mapping[str, int]] = {}
        grown: dict[str, Exception | None] = {}
        failed: dict[str, Exception] = {}
        for run_id in run_ids:
            with keep_error(run_id, failed):
                offsets[run_id] = self._runs[run_id].logs.offsets()
        owners = {path: run_id for run_id, mine in offsets.items() for path in mine}
        for path, data in self._read_new(offsets).items():
            run_id = owners[path]
            with keep_error(run_id, failed):
                if self._runs[run_id].logs.add(path, data, is_last=is_last):
                    grown[run_id] = None
        yield from (grown | failed).items()

    def read_to_end(self, run_ids: Iterable[str], *, most_reads: int | None = None) -> dict[str, Exception]:
        """Read the logs of these runs until nothing is new, or ``most_reads`` times. Raise as `read` does.

        Return the runs whose copies could not be written, with the error.
        """
        failed: dict[str, Exception] = {}
        left, reads = list(run_ids), 0
        while left and reads != most_reads:
            changed = dict(self.read(left))
            failed |= {run_id: error for run_id, error in changed.items() if error}
            left = [run_id for run_id in changed if run_id not in failed]
            reads += 1
        return failed

    def _read_new(self, offsets: Mapping[str, Mapping[str, int]]) -> Mapping[str, bytes]:
        """Return the new bytes of the logs of runs, by path. Note once which logs cannot be read. Raise TargetError."""
        found, errors = read_files(self._host, offsets, alone=self.unreadable)
        new = {run_id: error for run_id, error in errors.items() if run_id not in self.unreadable}
        self._notes += (f"{run_id}: {error}; llmb tries again" for run_id, error in new.items())
        self.unreadable = self.unreadable.difference(offsets).union(errors)
        return found
