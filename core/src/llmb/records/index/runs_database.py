"""The SQLite file that makes ``llmb runs`` fast: one row per run, which can be deleted at any time."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import attrs

from llmb.paths import home_folder
from llmb.records.index.filters_and_sort_keys import Condition, as_sortable_time, as_storable_text
from llmb.records.result import RunResult
from llmb.values.types.check_types import encode
from llmb.values.types.numbers import LARGEST

LOCK_TIMEOUT_S = 2.0  # for another process that writes the file

FILTERED = ("recipe", "image", "target", "gpu_type", "dtype", "gpus", "sweep", "state", "verdict")
COLUMNS = ("created", *FILTERED, "step_time", "ratio", "mfu", "first_repeat")
SCHEMA = f"""
create table runs (run_id text primary key, stamp text, ended integer, {", ".join(COLUMNS)}) without rowid;
create table folder (modified_ns integer);
create table results (run_id text primary key, result text);
create index runs_created on runs (created, run_id, {", ".join(FILTERED)});
create index runs_unended on runs (run_id, stamp) where not ended;
create index runs_repeats on runs (first_repeat) where first_repeat is not null;
"""
"""The index runs_created has all columns of filters, so that SQLite counts the matches without the rows."""

VERSION = zlib.crc32(f"{SCHEMA} {' '.join(attrs.fields_dict(RunResult))}".encode()) & 0x7FFFFFFF
"""A number that changes with the tables and with the fields of RunResult."""


@attrs.frozen(kw_only=True)
class Row:
    """One run as the database has it. ``result`` is the JSON object of `RunResult.as_dict`."""

    run_id: str
    stamp: str
    ended: bool
    columns: Mapping[str, str | int | float | None]
    result: str


class RunsDatabase:
    """An open database of runs. Its methods raise sqlite3.Error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def folder_time_ns(self) -> int | None:
        """Return the modification time of the folder of records of which the database has every run, or None."""
        row = self._connection.execute("select modified_ns from folder").fetchone()
        return None if row is None else int(row[0])

    def set_folder_time_ns(self, modified_ns: int) -> None:
        """Store that the database has every run of the folder as it was at this modification time."""
        with self._connection:
            self._connection.execute("delete from folder")
            self._connection.execute("insert into folder values (?)", (modified_ns,))

    def run_ids(self) -> set[str]:
        """Return the ids of all runs. One long text is read faster than many rows."""
        [(text,)] = self._connection.execute("select group_concat(run_id, char(10)) from runs")
        return set(map(_as_name, text.split("\n"))) if text else set()

    def unended(self) -> dict[str, str]:
        """Return the stamps of the runs that have not ended, by id."""
        rows = self._connection.execute("select run_id, stamp from runs where not ended")
        return {_as_name(key): stamp for key, stamp in rows}

    def update(self, rows: Iterable[Row], gone: Iterable[str]) -> None:
        """Add or replace rows, and delete others, in one transaction."""
        marks = ", ".join("?" * (len(COLUMNS) + 3))
        with self._connection:
            for row in rows:
                key = _as_key(row.run_id)
                values = (key, row.stamp, row.ended, *(_as_storable(row.columns.get(name)) for name in COLUMNS))
                self._connection.execute(f"insert or replace into runs values ({marks})", values)  # noqa: S608  # marks
                self._connection.execute("insert or replace into results values (?, ?)", (key, row.result))
            for run_id in gone:
                self._connection.execute("delete from runs where run_id = ?", (_as_key(run_id),))
                self._connection.execute("delete from results where run_id = ?", (_as_key(run_id),))

    def select(
        self, conditions: Sequence[Condition], *, sort: str, reverse: bool, limit: int | None
    ) -> tuple[int, list[tuple[str, str, str]]]:
        """Return the number of runs that match, and id, stamp and result of those within the limit, in order."""
        where = " and ".join(each.sql for each in conditions) or "true"
        values = [value for each in conditions for value in each.values]
        newest_last = sort == "created" and not reverse
        direction = "desc" if newest_last or reverse else "asc"
        [(total,)] = self._connection.execute(f"select count(*) from runs where {where}", values)  # noqa: S608  # SQL of this package
        nulls = "" if sort == "created" else f"{sort} is null, "
        query = (
            f"select run_id, stamp from runs where {where} "  # noqa: S608  # SQL of this package
            f"order by {nulls}{sort} {direction}, created {direction}, run_id {direction} limit ?"
        )
        found = self._connection.execute(query, [*values, -1 if limit is None else min(limit, LARGEST)]).fetchall()
        if newest_last:
            found.reverse()
        return total, [(_as_name(key), stamp, self._result(key)) for key, stamp in found]

    def _result(self, key: str) -> str:
        [(text,)] = self._connection.execute("select result from results where run_id = ?", (key,))
        return str(text)


@contextmanager
def open_database() -> Iterator[RunsDatabase]:
    """Open the file, after replacing a damaged one. Raise sqlite3.Error or OSError."""
    file = home_folder() / "index.sqlite"
    try:
        connection = _connect(str(file))
    except sqlite3.OperationalError:  # another process writes it, or the folder is read-only
        raise
    except sqlite3.DatabaseError:
        file.unlink(missing_ok=True)
        connection = _connect(str(file))
    try:
        yield RunsDatabase(connection)
    except sqlite3.DatabaseError as error:
        if not isinstance(error, sqlite3.OperationalError):
            file.unlink(missing_ok=True)  # damaged in a part that is read only now
        raise
    finally:
        connection.close()


@contextmanager
def open_in_memory() -> Iterator[RunsDatabase]:
    """Open an empty database that no other process sees."""
    with closing(_connect(":memory:")) as connection:
        yield RunsDatabase(connection)


def _connect(name: str) -> sqlite3.Connection:
    """Open a database with the current tables. Those of another version are dropped."""
    connection = sqlite3.connect(name, timeout=LOCK_TIMEOUT_S)
    try:
        [(version,)] = connection.execute("pragma user_version")
        if version != VERSION:
            with connection:
                for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
                    connection.execute(f'drop table "{table}"')
                connection.executescript(f"begin; {SCHEMA} pragma user_version = {VERSION}; commit;")
    except BaseException:
        connection.close()
        raise
    return connection


def _as_key(run_id: str) -> str:
    """Return the id of a run as SQLite can store it: names that are not printable as JSON."""
    return run_id if run_id.isascii() and run_id.isprintable() else json.dumps(run_id)


def _as_storable(value: str | int | float | None) -> str | int | float | None:
    """Return a value that SQLite can store. A damaged record may have any integer, which becomes None if too large."""
    if isinstance(value, str):
        return as_storable_text(value)
    return None if isinstance(value, int) and abs(value) > LARGEST else value


def _as_name(key: str) -> str:
    return str(json.loads(key)) if key.startswith('"') else key


def columns_of(result: RunResult, spec: Mapping[str, Any]) -> dict[str, str | int | float | None]:
    """Return the values of COLUMNS of a run."""
    metrics = result.metrics if result.window_complete is not False else None
    baseline = metrics.baseline if metrics else None
    workload, target = spec.get("workload", {}), spec.get("target", {})
    return {
        "created": as_sortable_time(result.created),
        "recipe": result.recipe or "",
        "image": str(workload.get("image", "")),
        "target": str(target.get("name", "")) if isinstance(target, Mapping) else "",
        "gpu_type": result.gpu_type or "",
        "dtype": result.dtype or "",
        "gpus": result.gpus,
        "sweep": "".join(f" {key}={_as_plain_text(value)} " for key, value in result.sweep.items()),
        "state": result.state,
        "verdict": result.verdict or "",
        "step_time": metrics.step_time_s if metrics else None,
        "ratio": baseline.step_time_ratio if baseline else None,
        "mfu": metrics.mfu if metrics else None,
        "first_repeat": result.first_repeat,
    }


def _as_plain_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(encode(value))
