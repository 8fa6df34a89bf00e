"""The tables and keys that a spec may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from llmb.spec.tables import (
    MeasureTable,
    ModelTable,
    ParallelismTable,
    TargetTable,
    WorkloadTable,
)
from llmb.values.nearest import nearest_name
from llmb.values.run import Profile

TABLES: Mapping[str, Any] = {
    "workload": WorkloadTable,
    "parallelism": ParallelismTable,
    "model": ModelTable,
    "framework": None,
    "env": None,
    "mounts": None,
    "profile": Profile,
    "measure": MeasureTable,
    "target": TargetTable,
}
"""The tables of one run's spec, each with the class of its keys where the core knows them."""


def nearest_key(name: str, tables: Iterable[str] = ()) -> str | None:
    """What was probably meant by a name that stands in no table: a key of that name, one of ``tables``, another key."""
    keys = {field.name: f"{table}.{field.name}" for table, cls in TABLES.items() if cls for field in attrs.fields(cls)}
    found = nearest_name(name, keys)
    return keys.get(name) or nearest_name(name, tables) or (keys[found] if found else None)
