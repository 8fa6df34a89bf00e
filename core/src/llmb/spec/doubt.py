"""Which keys of a spec are in doubt, so that nothing is told that only follows from another fault."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from llmb.values.error_text import NOT_A_KEY
from llmb.values.errors import Fault


def keys_of(faults: Iterable[Fault]) -> frozenset[str]:
    """The keys that have a fault."""
    return frozenset(fault.key for fault in faults if fault.key)


def doubtful(faults: Iterable[Fault], tables: Mapping[str, Any]) -> frozenset[str]:
    """The keys that have a fault; of one that nothing reads also the key that it was probably meant for."""
    faults = tuple(faults)
    meant = (_meant(fault) for fault in faults if fault.message == NOT_A_KEY and fault.key and fault.nearest)
    return keys_of(faults) | {key for key in meant if not _stated(tables, key.split("."))}


def _meant(fault: Fault) -> str:
    table, dot, _ = (fault.key or "").rpartition(".")
    return f"{table}{dot}{fault.nearest}"


def _stated(table: Any, names: Sequence[str]) -> bool:
    if not names:
        return True
    return isinstance(table, Mapping) and names[0] in table and _stated(table[names[0]], names[1:])


def touches(doubt: Collection[str], keys: Iterable[str]) -> bool:
    """Whether one of these keys, a table that it is in, or a part of it is in doubt."""
    return any(_within(each, key) or _within(key, each) for each in doubt for key in keys)


def _within(key: str, table: str) -> bool:
    return key == table or key.startswith((f"{table}.", f"{table}["))


def without(table: Mapping[str, Any], wrong: Collection[str], prefix: str) -> dict[str, Any]:
    """The table at ``prefix`` without the keys that are wrong; a list with a wrong item is left out."""
    kept = {}
    for name, value in table.items():
        key = f"{prefix}.{name}"
        if isinstance(value, Mapping) and key not in wrong:
            kept[name] = without(value, wrong, key)
        elif not any(each == key or each.startswith(f"{key}[") for each in wrong):
            kept[name] = value
    return kept
