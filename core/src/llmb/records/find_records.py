"""Finding the records of runs by their ids."""

from __future__ import annotations

from pathlib import Path

from llmb.records.create_records import complete_stale_sweeps
from llmb.records.record import OTHER_HOME, RunRecord, runs_folder
from llmb.values.errors import RecordError


def all_records() -> list[RunRecord]:
    """Return every record, in no order. Raise RecordError if the folder is unreadable."""
    folder = runs_folder()
    complete_stale_sweeps()
    try:
        return [RunRecord(each) for each in folder.iterdir() if _is_record(each)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}; {OTHER_HOME}") from error


def _is_record(folder: Path) -> bool:
    """Check whether a folder is a record. One that cannot be read is a record too, so that users see it."""
    try:
        return (folder / "run.toml").exists()
    except OSError:
        return True


def find_record(wanted: str) -> RunRecord:
    """Return the record of a run id or of a unique prefix. Raise RecordError if it is missing or damaged."""
    record = _find(wanted)
    record.spec()
    record.state()
    return record


def _find(wanted: str) -> RunRecord:
    records = {record.run_id: record for record in all_records()}
    if wanted in records:
        return records[wanted]
    matching = sorted(run_id for run_id in records if run_id.startswith(wanted)) if wanted else []
    if len(matching) == 1:
        return records[matching[0]]
    if matching:
        more = " ..." if len(matching) > 5 else ""
        raise RecordError(f"run {wanted!r} is not unique: {', '.join(matching[:5])}{more}")
    raise RecordError(f"there is no run {wanted!r} in {runs_folder()}; `llmb runs` lists them")
