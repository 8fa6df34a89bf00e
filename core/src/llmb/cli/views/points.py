"""The resolved points of a sweep as a table."""

from __future__ import annotations

from collections.abc import Sequence

import llmb
from llmb.cli.views.sweep import KEYS_IN_NAME, describe_sweep
from llmb.cli.views.tables import Column, table_lines

DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp", "fsdp")


def point_table(plans: Sequence[llmb.RunPlan]) -> list[str]:
    """Return the lines of a table with a row for each run: its point, the parallelism, batch sizes and model."""
    rows = [_row(plan) for plan in plans]
    titles = [title for title in rows[0] if any(row[title] not in ("", "-") for row in rows)]
    columns = [Column(title, right=title not in ("recipe", "gpu_type", "dtype", "sweep")) for title in titles]
    return [line.plain for line in table_lines(columns, [[row[title] for title in titles] for row in rows])]


def _row(plan: llmb.RunPlan) -> dict[str, str]:
    """Return the cells of a run by the title of their column. A degree that is off is ``-``."""
    run, parallelism = plan.run, plan.run.parallelism
    degrees = {name: getattr(parallelism, name) for name in DEGREES}
    return {
        "recipe": run.recipe,
        "gpu_type": run.gpu_type,
        "dtype": run.dtype,
        "gpus": str(run.gpus),
        "sweep": describe_sweep({key: value for key, value in plan.spec.swept.items() if key not in SHOWN}),
        "repeat": str(run.repeat) if plan.spec.repeats > 1 else "",
        "nodes": str(plan.job.nodes),
        **{name: "-" if degree in (None, 1) else str(degree) for name, degree in degrees.items()},
        "dp": str(parallelism.data_parallel(run.gpus)),
        "micro_batch_size": str(parallelism.micro_batch_size),
        "global_batch_size": str(parallelism.global_batch_size),
        "layers": str(run.model.layers) + (" (proxy)" if run.proxy else ""),
        "seq_len": str(run.model.seq_len),
        "steps": str(run.steps),
    }


SHOWN = {*KEYS_IN_NAME, "workload.recipe", *(f"parallelism.{name}" for name in DEGREES)}
"""Swept keys that are columns of their own."""
