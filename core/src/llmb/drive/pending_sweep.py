"""What is about to be recorded, in one file: so that a sweep is recorded whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from llmb.files import write_atomically


@attrs.frozen
class PendingSweep:
    """The texts of records by run id, in a file that is locked while a living process makes them."""

    file: Path
    descriptor: int
    texts: Mapping[str, tuple[str, str]]

    @classmethod
    def write(cls, folder: Path, texts: Mapping[str, tuple[str, str]]) -> PendingSweep:
        """From here on the records will be made, by this process or another. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{next(iter(texts))}.json"
        write_atomically(file, json.dumps(texts).encode(), 0o600)
        descriptor = os.open(file, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(file, descriptor, texts)

    @classmethod
    def find_stale(cls, folder: Path) -> Iterator[PendingSweep]:
        """Those of processes that live no more; each is locked."""
        for file in sorted(folder.glob("*.json")):
            with suppress(OSError, ValueError):  # another process has it, or has just removed it
                yield cls._open(file)

    @classmethod
    def _open(cls, file: Path) -> PendingSweep:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            texts = json.loads(file.read_bytes())
        except (OSError, ValueError):
            os.close(descriptor)
            raise
        return cls(file, descriptor, {run_id: (spec, job) for run_id, (spec, job) in texts.items()})

    def discard(self) -> None:
        """The records are made, or taken back."""
        self.file.unlink(missing_ok=True)

    def __enter__(self) -> PendingSweep:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self.descriptor)
