"""Finding the records of runs by their ids."""

import os
from collections.abc import Iterable

from llmb.files import file_exists
from llmb.paths import runs_folder
from llmb.records.create_records import complete_stale_sweeps
from llmb.records.record import RunRecord
from llmb.records.record_files import OTHER_HOME
from llmb.values.errors import Fault, RecordError
from llmb.values.texts.error_text import NAMED_RUNS, count_others
from llmb.values.texts.nearest_name import nearest_name

SIMILAR = 0.8
"""How similar an id must be to be suggested: four of five characters. Ids are random, so most share some."""


def all_records() -> list[RunRecord]:
    """Return every record, in no order. Raise RecordError if the folder is unreadable."""
    complete_stale_sweeps()
    return [RunRecord(runs_folder() / name) for name in folder_names() if is_record(name)]


def folder_names() -> list[str]:
    """Return the names of all folders of records. Raise RecordError if the folder above is unreadable."""
    try:
        return os.listdir(runs_folder())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{runs_folder()} cannot be read: {error.strerror}; {OTHER_HOME}") from error


def is_record(name: str) -> bool:
    """Check whether a folder is a record. One that cannot be read is a record too, so that users see it."""
    try:
        return file_exists(runs_folder() / name / "run.toml")
    except OSError:
        return True


def find_record(run_id: str) -> RunRecord:
    """Return the record of a run id or of a unique prefix. Raise RecordError if it is missing or damaged."""
    return _checked(_find(run_id))


def open_record(run_id: str) -> RunRecord:
    """Return the record of a run id that is known to exist. Raise RecordError if it is damaged."""
    return _checked(RunRecord(runs_folder() / run_id))


def _checked(record: RunRecord) -> RunRecord:
    record.spec()
    record.state()
    return record


def _find(run_id: str) -> RunRecord:
    complete_stale_sweeps()
    names = folder_names()
    if run_id in names and is_record(run_id):  # the view of a sweep looks up each run that ended
        return RunRecord(runs_folder() / run_id)
    records = {name: RunRecord(runs_folder() / name) for name in names if is_record(name)}
    begin, _, end = run_id.partition("…")  # by which tables shorten an id
    matching = sorted(each for each in records if begin and each.startswith(begin) and each.endswith(end))
    if len(matching) == 1:
        return records[matching[0]]
    if matching:
        lines = "\n".join([*matching[:NAMED_RUNS], count_others(matching, NAMED_RUNS)]).rstrip()
        raise RecordError(Fault(message=f"{run_id!r} is the beginning of {len(matching)} run ids", lines=lines))
    if "=" in run_id:
        raise RecordError(f"there is no run {run_id!r}; filters are written in braces: '{{{run_id.strip('{}')}}}'")
    raise RecordError(
        Fault(
            message=f"there is no run {run_id!r} in {runs_folder()}; `llmb runs` lists them",
            nearest=_nearest_run(run_id, records),
        )
    )


def _nearest_run(run_id: str, run_ids: Iterable[str]) -> str | None:
    """Return the run whose id begins almost like ``run_id``, or None. The random part of an id is its beginning."""
    beginnings = {each[: len(run_id)]: each for each in run_ids}
    nearest = nearest_name(run_id, beginnings, cutoff=SIMILAR)
    return beginnings[nearest] if nearest else None
