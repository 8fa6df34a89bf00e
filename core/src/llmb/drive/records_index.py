"""The list of all runs, made fast by a SQLite file that can be deleted at any time."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress

import attrs

from llmb.drive.find_records import all_records
from llmb.drive.record import RunRecord
from llmb.drive.result import RunResult, read_result
from llmb.paths import home_folder

LOCK_TIMEOUT_S = 2.0  # for another process that writes the index
_TABLE = "create table if not exists runs (run_id text primary key, stamp text, result text)"


def list_runs() -> list[RunResult]:
    """Return all recorded runs, oldest first. Raise RecordError if the folder of records is unreadable."""
    records = all_records()
    stamps = {record.run_id: _stamp(record) for record in records}
    known = _load_known()
    found = {}
    for record in records:
        stamp, text = known.get(record.run_id, ("", ""))
        current = stamp == stamps[record.run_id]
        found[record.run_id] = RunResult.from_dict(json.loads(text)) if current else read_result(record)
    news = [
        (run_id, stamps[run_id], json.dumps(each.as_dict()))
        for run_id, each in found.items()
        if known.get(run_id, ("", ""))[0] != stamps[run_id]
        and run_id.isprintable()  # SQLite cannot store a name that is not UTF-8
    ]
    _store(news, gone=set(known) - set(found))
    return sorted(found.values(), key=lambda each: (each.created or "", each.run_id))


def _stamp(record: RunRecord) -> str:
    """Return a text that changes whenever the record or the fields of RunResult change."""
    parts = [" ".join(attrs.fields_dict(RunResult))]
    for name in ("events.jsonl", "result.json", "run.toml"):
        with suppress(OSError):
            status = (record.directory / name).stat()
            parts.append(f"{name}:{status.st_mtime_ns}:{status.st_size}")
    return ",".join(parts)


def _load_known() -> dict[str, tuple[str, str]]:
    with suppress(sqlite3.Error, OSError), closing(_open()) as database:
        rows = database.execute("select run_id, stamp, result from runs")
        return {run_id: (stamp, text) for run_id, stamp, text in rows}
    return {}


def _store(news: list[tuple[str, str, str]], gone: set[str]) -> None:
    """Store results. Ignore errors, because the index is only a cache."""
    if not news and not gone:
        return
    with suppress(sqlite3.Error, OSError), closing(_open()) as database, database:
        database.executemany("insert or replace into runs (run_id, stamp, result) values (?, ?, ?)", news)
        database.executemany("delete from runs where run_id = ?", [(each,) for each in gone])


def _open() -> sqlite3.Connection:
    file = home_folder() / "index.sqlite"
    database = sqlite3.connect(file, timeout=LOCK_TIMEOUT_S)
    try:
        database.execute(_TABLE)
    except sqlite3.OperationalError:  # another process writes it
        database.close()
        raise
    except sqlite3.DatabaseError:
        database.close()
        file.unlink(missing_ok=True)  # damaged
        database = sqlite3.connect(file, timeout=LOCK_TIMEOUT_S)
        database.execute(_TABLE)
    return database
