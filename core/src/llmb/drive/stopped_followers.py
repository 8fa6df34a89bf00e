"""Notes on processes that follow runs but are stopped. They bring no run forward and let no other process do so."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from llmb.records.record import RunRecord
from llmb.state_machine.events import Note
from llmb.values.texts.error_text import counted


@attrs.define(eq=False)
class StoppedFollowers:
    """Reports each stopped process once."""

    _reported: set[int] = attrs.field(factory=set)

    def note(self, records: Iterable[RunRecord]) -> Iterator[Note]:
        """Yield which stopped processes follow these runs, and how to continue or end them."""
        runs = {record.directory / "lock": record.run_id for record in records}
        by_process: dict[int, list[str]] = {}
        for file, process in find_stopped_holders(runs).items():
            by_process.setdefault(process, []).append(runs[file])
        for process, (first, *others) in by_process.items():
            if process not in self._reported:
                self._reported.add(process)
                more = f" and {counted(len(others), 'other run')}" if others else ""
                yield Note(
                    text=f"process {process} follows {first}{more}, but it is stopped, as by Ctrl-Z: continue it with "
                    f"`kill -CONT {process}`, or end it with `kill -KILL {process}`, and this llmb follows instead"
                )


def find_stopped_holders(files: Collection[Path]) -> Mapping[Path, int]:
    """Return the locked files whose lock is held by a stopped process of this machine, with the id of the process.

    Ctrl-Z stops a process, which keeps its locks. Processes on other machines that share the files are unknown.
    """
    if not files:
        return {}  # as in most ticks; a login node may have thousands of locks
    locks = list(_read_locks())
    stopped = {process for process in {process for _, process in locks} if _is_stopped(process)}
    candidates = [(inode, process) for inode, process in locks if process in stopped]
    found: dict[Path, int] = {}
    for file in files if candidates else ():
        with suppress(OSError):
            status = file.stat()
            holders = (process for inode, process in candidates if inode == status.st_ino)
            if holder := next((process for process in holders if _has_open(process, status)), None):
                found[file] = holder
    return found


def _read_locks() -> Iterator[tuple[int, int]]:
    """Yield the inode of each locked file, and the process that holds the lock. Yield nothing if they are unknown."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()  # 1: FLOCK  ADVISORY  WRITE 12345 fd:01:1234567 0 EOF
            if len(words) == 8 and words[4].isdigit():
                yield int(words[5].rpartition(":")[2]), int(words[4])


def _is_stopped(process: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _has_open(process: int, status: os.stat_result) -> bool:
    """Check whether a process has a file open. Inodes are unique on one file system only."""
    with suppress(OSError):  # a process of another user
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(descriptor.stat(), status):
                    return True
    return False
