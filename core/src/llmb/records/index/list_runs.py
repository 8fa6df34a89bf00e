"""The list of recorded runs: files are the truth, and a database makes the list fast."""

import json
import os
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from llmb.paths import runs_folder
from llmb.records.create_records import complete_stale_sweeps
from llmb.records.find_record_by_id import folder_names, is_record
from llmb.records.index.filters_and_sort_keys import Condition, as_storable_text, check_sort_key, parse_filters
from llmb.records.index.runs_database import Row, RunsDatabase, columns_of, open_database, open_in_memory
from llmb.records.record import RunRecord
from llmb.records.result import RunResult, read_result
from llmb.values.errors import Fault, RecordError, SpecError
from llmb.values.types.check_arguments import check_arguments

CLOCK_STEP_NS = 2_000_000_000
"""The coarsest clock of a file system. Two changes within one step may leave the same modification time."""

STATE_FILES = ("events.jsonl", "result.json", "run.toml")
"""Files of a record on which the columns of the database depend."""


@attrs.frozen(kw_only=True)
class RunListing:
    """Recorded runs in order, each as the JSON text of `RunResult.as_dict`. ``total`` counts those beyond the limit."""

    total: int
    run_ids: tuple[str, ...]
    documents: tuple[str, ...]

    def results(self) -> list[RunResult]:
        """Return the runs as values."""
        return [RunResult.from_dict(json.loads(each)) for each in self.documents]


def list_runs() -> list[RunResult]:
    """Return all recorded runs, oldest first. Raise RecordError if the folder of records is unreadable."""
    return find_runs().results()


@check_arguments
def find_runs(
    filters: Sequence[str] = (),
    *,
    sort: str = "created",
    reverse: bool = False,
    limit: int | None = None,
    rescan: bool = False,
) -> RunListing:
    """Return the recorded runs that match every ``key=value``, the newest last.

    ``sort`` is created, step_time, ratio, mfu or gpus; runs without a value come last. Of the runs sorted by their
    creation, a ``limit`` keeps the newest. ``rescan`` reads every record again. Raise SpecError for an invalid filter,
    sort key or limit, and RecordError if the folder of records is unreadable.
    """
    check_sort_key(sort)
    if limit is not None and limit < 0:
        raise SpecError(Fault(message=f"invalid value {limit}", key="limit", expected="an integer of at least 0"))
    return select_records(parse_filters(filters), sort=sort, reverse=reverse, limit=limit, rescan=rescan)


def select_records(
    conditions: Sequence[Condition],
    *,
    sort: str = "created",
    reverse: bool = False,
    limit: int | None = None,
    rescan: bool = False,
) -> RunListing:
    """Return the recorded runs that match conditions, like `find_runs`."""
    complete_stale_sweeps()
    query = {"sort": sort, "reverse": reverse, "limit": limit}
    with suppress(sqlite3.Error, OSError, ValueError), open_database() as database:
        _update_names(database, rescan=rescan)
        return _select(database, conditions, query)
    with open_in_memory() as database:  # the file is damaged, read-only, or locked by another process
        _update_names(database, rescan=False)
        return _select(database, conditions, query)


def _update_names(database: RunsDatabase, *, rescan: bool) -> None:
    """Add new records to the database and delete those that are gone. Raise RecordError.

    If the folder was not modified since the last scan, no folder was added or removed.
    """
    modified_ns = _modified_ns()
    if not rescan and modified_ns is not None and modified_ns == database.folder_time_ns():
        return
    names, known = set(folder_names()), database.run_ids()
    _update(database, names if rescan else names - known, gone=known - names)
    is_settled = modified_ns is not None and time.time_ns() - modified_ns > CLOCK_STEP_NS
    if is_settled and names == database.run_ids():  # every folder is a record
        database.set_folder_time_ns(modified_ns or 0)


def _modified_ns() -> int | None:
    with suppress(OSError):
        return os.stat(runs_folder()).st_mtime_ns
    return None


def _select(database: RunsDatabase, conditions: Sequence[Condition], query: Mapping[str, Any]) -> RunListing:
    """Update the database where records changed, and select from it. Progress is updated only of runs that are shown.

    A record is read at most once, because that of a running job may change all the time.
    """
    read = {name for name, stamp in database.unended().items() if not stamp.startswith(_stamp(name, STATE_FILES))}
    _update(database, read)
    while True:
        total, found = database.select(conditions, **query)
        changed = {run_id for run_id, stamp, _ in found if run_id not in read and _stamp(run_id) != stamp}
        if not changed:
            break
        _update(database, changed)  # also records that ended before, and were changed or damaged since
        read |= changed
    return RunListing(
        total=total, run_ids=tuple(run_id for run_id, _, _ in found), documents=tuple(text for _, _, text in found)
    )


def _update(database: RunsDatabase, names: Collection[str], gone: Collection[str] = ()) -> None:
    records = [name for name in names if is_record(name)]
    if names or gone:
        database.update(map(_read_row, records), {*gone, *names}.difference(records))


def _read_row(name: str) -> Row:
    record = RunRecord(runs_folder() / name)
    stamp = _stamp(name)  # before the files are read: a later change is seen
    result = read_result(record)
    spec: dict[str, Any] = {}
    with suppress(RecordError):
        spec = record.spec()
    document = json.dumps(result.as_dict())
    return Row(run_id=name, stamp=stamp, ended=result.ended, columns=columns_of(result, spec), result=document)


def _stamp(name: str, files: Sequence[str] = (*STATE_FILES, "progress.json")) -> str:
    """Return a text that changes whenever one of these files of a record changes, or the folder of all records.

    A result contains the path of its record, so the results in a copied database are outdated.
    """
    folder = f"{runs_folder()}/{name}"
    parts = [as_storable_text(f"{runs_folder()},")]
    for file in files:
        with suppress(OSError):
            status = os.stat(f"{folder}/{file}")
            parts.append(f"{status.st_mtime_ns}:{status.st_size}")
        parts.append(",")
    return "".join(parts)
