"""The last known progress of a run whose job is running: ``progress.json`` of its record."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs

from llmb.files import write_atomically
from llmb.records.record import RunRecord
from llmb.records.record_files import read_file
from llmb.state_machine.events import Progress
from llmb.values.errors import RecordError
from llmb.values.types.check_types import decode_fields


@attrs.frozen(kw_only=True)
class RunProgress:
    """Progress of a running job when llmb last read its logs: the number of the attempt, and fields of `Progress`."""

    attempt: int = 0
    phase: str = ""
    step: int | None = None
    step_time_s: float | None = None
    mfu: float | None = None
    left_s: float | None = None
    limit_step: int | None = None


FILE = "progress.json"
FIELDS = tuple(field.name for field in attrs.fields(RunProgress) if field.name != "attempt")


def write_progress(record: RunRecord, progress: Progress, attempt: int) -> None:
    """Replace the last progress of a run, which belongs to this attempt of its job. Ignore errors of the disk."""
    values = {name: getattr(progress, name) for name in FIELDS}
    text = json.dumps({"time": progress.time, "attempt": attempt, **values})
    with suppress(OSError):  # the copies of the logs are the truth
        write_atomically(record.directory / FILE, f"{text}\n".encode(), sync=False)


def remove_progress(record: RunRecord) -> None:
    """Remove the last progress of a run that has a result."""
    with suppress(OSError):
        (record.directory / FILE).unlink()


def read_progress(record: RunRecord, attempt: int) -> tuple[RunProgress | None, float]:
    """Return the last progress of this attempt and its time in seconds since 1970, or None and 0 if it is unknown."""
    table: Any = None
    time_s = 0.0
    with suppress(RecordError, ValueError, RecursionError, LookupError, TypeError, OverflowError):
        table = json.loads(read_file(record.directory / FILE) or b"")
        time_s = float(table["time"])
    if not isinstance(table, Mapping) or table.get("attempt") != attempt:
        return None, 0.0
    known = {name: table[name] for name in FIELDS if table.get(name) is not None}
    values, _ = decode_fields(known, RunProgress, "", required=False)
    return RunProgress(attempt=attempt, **values), time_s
