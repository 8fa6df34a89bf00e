"""A quick look at all runs: a SQLite file that remembers what each record said, and can be deleted at any time."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from contextlib import closing, suppress
from typing import Any

from llmb.engine.record import RunRecord, all_records
from llmb.paths import home_folder
from llmb.values.errors import RecordError

_TABLE = "create table if not exists runs (run_id text primary key, stamp text, summary text)"


def summaries() -> list[dict[str, Any]]:
    """One object a run, oldest first. Raises RecordError where the records cannot be listed."""
    records = all_records()
    stamps = {record.run_id: _stamp(record) for record in records}
    known = _remembered()
    found = {}
    for record in records:
        stamp, text = known.get(record.run_id, ("", ""))
        found[record.run_id] = json.loads(text) if stamp == stamps[record.run_id] else summary(record)
    news = [
        (run_id, stamps[run_id], json.dumps(each))
        for run_id, each in found.items()
        if known.get(run_id, ("", ""))[0] != stamps[run_id]
    ]
    _remember(news, gone=set(known) - set(found))
    return sorted(found.values(), key=lambda each: (each["created"] or "", each["run_id"]))


def summary(record: RunRecord) -> dict[str, Any]:
    """One run as its files tell it; what it has no figures of yet is null."""
    spec: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        spec = tomllib.loads((record.directory / "run.toml").read_text())
    workload, provenance = (_table(spec, name) for name in ("workload", "provenance"))
    created = provenance.get("created")
    from_spec = {key: workload.get(key) for key in ("recipe", "gpu_type", "dtype", "gpus")}
    empty = {"metrics": None, "verdict": None, "reason": "", "failure": None}
    state: dict[str, Any] = {"state": "lost"}
    try:
        state = record.state()
        result = record.result() or {}
    except RecordError as error:  # the list of all runs is not lost with one of them
        result = {"reason": str(error)}
    return {
        "run_id": record.run_id,
        "state": state["state"],
        **from_spec,
        "job_id": state.get("job_id"),
        "directory": str(record.directory),
        **{key: result.get(key, value) for key, value in empty.items()},
        "created": created,
    }


def _table(spec: dict[str, Any], name: str) -> dict[str, Any]:
    table = spec.get(name)
    return table if isinstance(table, dict) else {}


def _stamp(record: RunRecord) -> str:
    """Changes whenever the record does."""
    parts = []
    for name in ("events.jsonl", "result.json", "run.toml"):
        with suppress(OSError):
            status = (record.directory / name).stat()
            parts.append(f"{name}:{status.st_mtime_ns}:{status.st_size}")
    return ",".join(parts)


def _remembered() -> dict[str, tuple[str, str]]:
    with suppress(sqlite3.Error, OSError), closing(_open()) as database:
        return {run_id: (stamp, text) for run_id, stamp, text in database.execute("select * from runs")}
    return {}


def _remember(news: list[tuple[str, str, str]], gone: set[str]) -> None:
    """Only a cache: where it cannot be written, nothing is lost but time."""
    if not news and not gone:
        return
    with suppress(sqlite3.Error, OSError), closing(_open()) as database, database:
        database.executemany("insert or replace into runs values (?, ?, ?)", news)
        database.executemany("delete from runs where run_id = ?", [(each,) for each in gone])


def _open() -> sqlite3.Connection:
    file = home_folder() / "index.sqlite"
    database = sqlite3.connect(file, timeout=2)
    try:
        database.execute(_TABLE)
    except sqlite3.DatabaseError:
        database.close()
        file.unlink(missing_ok=True)  # not a database any more: it is made anew
        database = sqlite3.connect(file, timeout=2)
        database.execute(_TABLE)
    return database
