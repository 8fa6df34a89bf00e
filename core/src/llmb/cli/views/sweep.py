"""The values by which the runs of a sweep differ."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import llmb

KEYS_IN_NAME = frozenset({"workload.gpu_type", "workload.dtype", "workload.gpus", "workload.variant"})
"""Keys whose values are part of a run's name, and so of its id."""

LONGEST_VALUE = 24
"""The number of characters that a table shows of a value."""

BEGIN_OF_ID = 8
"""Characters at the beginning of a run id that a shortened id keeps. The first five are unique in most lists."""


def shorten_id(run_id: str, width: int) -> str:
    """Return a run id of at most so many characters. Its middle is left out: runs of a sweep differ at the end."""
    if len(run_id) <= width:
        return run_id
    begin = min(BEGIN_OF_ID, width - 1)
    return f"{run_id[:begin]}…{run_id[len(run_id) - (width - begin - 1) :]}"


def describe_sweep(sweep: Mapping[str, Any]) -> str:
    """Return values such as ``parallelism.tp = 2, env.A = on``, without those that are part of the run's name."""
    return ", ".join(f"{key} = {_format_value(value)}" for key, value in sweep.items() if key not in KEYS_IN_NAME)


def describe_differences(runs: Sequence[llmb.RunResult]) -> list[str]:
    """Return for each run the values, such as ``tp=2, repeat=1``, that differ between runs of its name.

    Shorten a key to its last part if no other key in the list ends in the same part.
    """
    named = [(run.run_id.partition("-")[2], _values(run)) for run in runs]
    by_name = defaultdict(list)
    for name, values in named:
        by_name[name].append(values)
    differing = {name: _differing_keys(values) for name, values in by_name.items()}
    last_parts = Counter(key.rpartition(".")[2] for key in set().union(*differing.values()))
    return [_describe(values, differing[name], last_parts) for name, values in named]


def _values(run: llmb.RunResult) -> dict[str, str]:
    repeat = {"repeat": str(run.repeat)} if run.repeats > 1 else {}
    sweep = {key: value for key, value in run.sweep.items() if key not in KEYS_IN_NAME}  # runs of a name share these
    return {key: _format_value(value) for key, value in sweep.items()} | repeat


def _differing_keys(runs: Sequence[Mapping[str, str]]) -> set[str]:
    keys = {key for values in runs for key in values}
    return {key for key in keys if len({values.get(key) for values in runs}) > 1}


def _describe(values: Mapping[str, str], keys: Collection[str], last_parts: Mapping[str, int]) -> str:
    descriptions = []
    for key, value in values.items():
        if key in keys:
            last = key.rpartition(".")[2]
            shown = value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"
            descriptions.append(f"{last if last_parts[last] == 1 else key}={shown}")
    return ", ".join(descriptions)


def _format_value(value: Any) -> str:
    """Return a value as TOML writes it, but strings without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)
