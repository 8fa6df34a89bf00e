"""Write-ahead file of a sweep: after a kill, another process creates the records that are missing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from llmb.records.lock_file import lock_file

PendingRun = tuple[Mapping[str, Any], str, Mapping[str, str]]
"""What a record needs: the tables of run.toml, the text of job.sh, and the texts of further files by path."""


@attrs.frozen
class PendingSweep:
    """The runs of a sweep, by id, in a file, which is locked while a living process creates the records."""

    file: Path
    descriptor: int
    runs: Mapping[str, PendingRun]

    @classmethod
    def write(cls, folder: Path, runs: Mapping[str, PendingRun]) -> PendingSweep:
        """Write, sync and lock the file. From here on this process or another creates the records. Raise OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{next(iter(runs))}.json"
        partial = folder / f".{file.name}.{os.getpid()}.partial"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        descriptor = lock_file(partial, flags)  # before the file has its name, by which other processes find it
        assert descriptor is not None
        try:
            with open(descriptor, "wb", closefd=False) as opened:
                opened.write(json.dumps(runs).encode())
            os.fsync(descriptor)
            os.replace(partial, file)
        except BaseException:  # Ctrl-C too
            partial.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(file, descriptor, runs)

    @classmethod
    def find_stale(cls, folder: Path) -> Iterator[PendingSweep]:
        """Yield the sweeps of processes that are gone, each locked."""
        try:
            files = sorted(folder.glob("*.json"))
        except OSError:  # the folder above cannot be read, which is reported when its runs are listed
            return
        for file in files:
            with suppress(OSError, ValueError):  # another process has just removed the file
                if (descriptor := lock_file(file, os.O_RDONLY)) is not None:
                    yield cls._read(file, descriptor)

    @classmethod
    def _read(cls, file: Path, descriptor: int) -> PendingSweep:
        try:
            runs = json.loads(file.read_bytes())  # fails if the process that held the lock removed the file
            return cls(
                file,
                descriptor,
                {run_id: (dict(spec), str(job), dict(*files)) for run_id, (spec, job, *files) in runs.items()},
            )
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            os.close(descriptor)
            raise ValueError(f"{file} does not contain the records of a sweep") from error

    def discard(self) -> None:
        """Delete the file: all records are created, or were taken back."""
        self.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Free the lock."""
        os.close(self.descriptor)
