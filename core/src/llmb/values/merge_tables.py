"""Merge two tables key by key, as a recipe over its shared files or a fix over its release."""

from collections.abc import Mapping
from typing import Any

from llmb.values.frozen import FrozenMap


def merge_tables(below: Mapping[str, Any], above: Mapping[str, Any]) -> FrozenMap[str, Any]:
    """Return both tables. If both have a key, the value of ``above`` is used; tables are merged."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = merge_tables(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return FrozenMap(both, deep=all(isinstance(each, FrozenMap) and each.deep for each in (below, above)))
