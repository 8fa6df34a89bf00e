"""Run ids, which are drawn when runs are started or planned, never when a spec is loaded."""

import re
import secrets

import attrs

from llmb.values.workload import RunSpec, Workload

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike

LONGEST_NAME = 120
"""The most characters of a run's name in its id, which is the name of folders, jobs and containers."""


def draw_run_ids(workload: Workload) -> Workload:
    """Return the workload with a new id and a directory for each run. No two runs of the workload share an id."""
    drawn: dict[str, RunSpec] = {}
    for spec in workload.runs:
        while (run_id := _random_id(spec.run.name)) in drawn:
            pass
        drawn[run_id] = spec.with_run_id(run_id)
    return attrs.evolve(workload, runs=tuple(drawn.values()))


def _random_id(name: str) -> str:
    """Return a run id: five random characters, which are enough to type, and the run's name."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(5))
    return f"{prefix}-{re.sub(r'[^a-z0-9.]+', '-', name.lower())[:LONGEST_NAME].strip('-')}"
