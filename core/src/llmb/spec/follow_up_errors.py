"""Preventing follow-up errors: keys whose values cannot be trusted, so that one typo causes no second, false error.

A check that reads several keys is skipped if one of these keys is suspect.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.spec.workload_tables import TABLES
from llmb.values.errors import Fault
from llmb.values.texts.error_text import UNKNOWN_KEY


def keys_of(errors: Iterable[Fault]) -> frozenset[str]:
    """Return the keys that have an error."""
    return frozenset(error.key for error in errors if error.key)


def suspect_keys(errors: Collection[Fault], tables: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys that have an error, and for each unknown key the keys that may have been meant."""
    absent = frozenset(_absent_keys(errors, tables))
    return keys_of(errors) | meant_keys(errors, tables) | meant_tables(errors) | absent


def meant_keys(errors: Iterable[Fault], tables: Mapping[str, Any]) -> frozenset[str]:
    """Return for each unknown key the key that was probably meant, if the tables lack it."""
    meant = (_meant(error) for error in errors if error.message == UNKNOWN_KEY and error.key and error.nearest)
    return frozenset(key for key in meant if not _contains(tables, key.split(".")))


def meant_tables(errors: Iterable[Fault]) -> frozenset[str]:
    """Return for each unknown table the one that was probably meant. It lacks keys, and may have swept keys."""
    nearest = {error.nearest for error in errors if error.message == UNKNOWN_KEY and "." not in (error.key or "")}
    return frozenset(name for name in TABLES if name in nearest)


def overlaps(suspects: Collection[str], keys: Iterable[str]) -> bool:
    """Check whether any of ``keys``, a table that contains the key, or a part of its value is suspect."""
    return any(_is_within(suspect, key) or _is_within(key, suspect) for suspect in suspects for key in keys)


def _absent_keys(errors: Iterable[Fault], tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the absent keys of each table with an unknown key that resembles none of them, such as ``ep_size``."""
    for error in errors:
        table, dot, _ = (error.key or "").rpartition(".")
        if error.message == UNKNOWN_KEY and dot and (cls := TABLES.get(table)) and not meant_keys([error], tables):
            yield from (f"{table}.{field.name}" for field in attrs.fields(cls) if field.name not in tables[table])


def _meant(error: Fault) -> str:
    """Return the key that was meant, with its table."""
    table, dot, _ = (error.key or "").rpartition(".")
    nearest = error.nearest or ""
    return nearest if "." in nearest and nearest.partition(".")[0] in TABLES else f"{table}{dot}{nearest}"


def _contains(table: Any, names: Sequence[str]) -> bool:
    if not names:
        return True
    return isinstance(table, Mapping) and names[0] in table and _contains(table[names[0]], names[1:])


def _is_within(key: str, table: str) -> bool:
    return key == table or key.startswith((f"{table}.", f"{table}["))
