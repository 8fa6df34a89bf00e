"""Reading what is new in the logs of runs, for all runs of a target with one command."""

from collections.abc import Iterable, Iterator, Mapping

from llmb.drive.isolate_errors import keep_error
from llmb.drive.session_run import SessionRun
from llmb.values.host import Host


def read_logs(
    run_ids: Iterable[str], runs: Mapping[str, SessionRun], host: Host, *, is_last: bool = False
) -> Iterator[tuple[str, Exception | None]]:
    """Append what is new in the logs of these runs to their copies, with one command. Raise TargetError.

    Yield each run whose copies have grown, and each run whose copies could not be written, with the error. Without
    ``is_last``, a possible beginning of a secret at the end of a log is left for a later call.
    """
    owners: dict[str, str] = {}
    offsets: dict[str, int] = {}
    grown: dict[str, Exception | None] = {}
    failed: dict[str, Exception] = {}
    for run_id in run_ids:
        with keep_error(run_id, failed):
            offsets |= (mine := runs[run_id].logs.offsets())
            owners |= dict.fromkeys(mine, run_id)
    found = host.read(offsets) if offsets else {}
    for path, data in found.items():
        run_id = owners[path]
        with keep_error(run_id, failed):
            if runs[run_id].logs.add(path, data, is_last=is_last):
                grown[run_id] = None
    yield from (grown | failed).items()


def read_logs_to_end(
    run_ids: Iterable[str], runs: Mapping[str, SessionRun], host: Host, *, most_reads: int | None = None
) -> dict[str, Exception]:
    """Read the logs of these runs until nothing is new, or ``most_reads`` times. Raise TargetError.

    Return the runs whose copies could not be written, with the error.
    """
    failed: dict[str, Exception] = {}
    left, reads = list(run_ids), 0
    while left and reads != most_reads:
        changed = dict(read_logs(left, runs, host))
        failed |= {run_id: error for run_id, error in changed.items() if error}
        left = [run_id for run_id in changed if run_id not in failed]
        reads += 1
    return failed
