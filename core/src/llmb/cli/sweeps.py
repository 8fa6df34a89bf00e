"""What tells the runs of a sweep from one another, as people read it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llmb.drive.result import RunResult
from llmb.values.frozen import thaw

IN_EVERY_NAME = frozenset({"workload.gpu_type", "workload.dtype", "workload.gpus"})
"""What the name of a run, and so its id, tells already."""

LONGEST = 24
"""How much of a value a table shows, in characters."""

REPEAT = "repeat"


def swept_values(sweep: Mapping[str, Any]) -> str:
    """Such as ``parallelism.tp = 2, env.A = on``, without what the run's name tells."""
    return ", ".join(f"{key} = {_written(value)}" for key, value in sweep.items() if key not in IN_EVERY_NAME)


def differing_values(runs: Sequence[RunResult]) -> list[str]:
    """For each run, such as ``tp=2, repeat=1``: the values in which it differs from others of its name.

    Of a key only its last part is shown, where that is the same of no other one shown.
    """
    by_name = defaultdict(list)
    for run in runs:
        by_name[_name(run)].append(_values(run))
    differing = {name: _differing(values) for name, values in by_name.items()}
    last_parts = Counter(key.rpartition(".")[2] for key in set().union(*differing.values()))
    return [_brief(_values(run), differing[_name(run)], last_parts) for run in runs]


def _name(run: RunResult) -> str:
    return run.run_id.partition("-")[2]


def _values(run: RunResult) -> dict[str, str]:
    repeat = {REPEAT: str(run.repeat)} if run.repeats > 1 else {}
    return {key: _written(value) for key, value in run.sweep.items()} | repeat


def _differing(several: Sequence[Mapping[str, str]]) -> set[str]:
    keys = {key for values in several for key in values}
    return {key for key in keys if len({values.get(key) for values in several}) > 1}


def _brief(values: Mapping[str, str], wanted: Collection[str], last_parts: Mapping[str, int]) -> str:
    words = []
    for key, value in values.items():
        if key in wanted:
            last = key.rpartition(".")[2]
            shown = value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
            words.append(f"{last if last_parts[last] == 1 else key}={shown}")
    return ", ".join(words)


def _written(value: Any) -> str:
    """As TOML has it, but for quotes around a string that needs none."""
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)
