"""The resolved points of a sweep as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llmb
from llmb.cli.views.sweep import KEYS_IN_NAME, describe_sweep
from llmb.cli.views.tables import Column, notes_of_width, table_lines

DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp", "fsdp")

OPTIONAL = ("nodes", "dp", "micro_batch_size", "global_batch_size", "layers", "seq_len", "steps")
"""Columns that a narrow terminal leaves out, the last one first."""

SWEEP_WIDTH = 20
"""The least width of the column of sweep values, in characters."""


def point_table(plans: Sequence[llmb.RunPlan], width: int | None = None) -> list[str]:
    """Return the lines of a table with a row for each run: its point, the parallelism, batch sizes and model.

    Columns that do not fit in ``width`` are named in the last line.
    """
    rows = [_row(plan) for plan in plans]
    titles = [title for title in rows[0] if any(row[title] not in ("", "-") for row in rows)]
    columns = [_column(title) for title in titles]
    cells = [[row[title] for title in titles] for row in rows]
    return [*(line.plain for line in table_lines(columns, cells, width)), *notes_of_width(columns, cells, width)]


def _column(title: str) -> Column:
    is_text = title in ("recipe", "gpu_type", "dtype", "sweep")
    return Column(title, right=not is_text, optional=title in OPTIONAL, wraps=SWEEP_WIDTH if title == "sweep" else None)


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
        "layers": _layers(run),
        "seq_len": str(run.seq_len),
        "steps": str(run.steps),
    }


def _layers(run: llmb.Run[Any]) -> str:
    """Return the number of layers, marked if the model is a proxy; "" if the recipe states no architecture."""
    return str(run.architecture.layers) + (" (proxy)" if run.proxy else "") if run.architecture else ""


SHOWN = {*KEYS_IN_NAME, "workload.recipe", *(f"parallelism.{name}" for name in DEGREES)}
"""Swept keys that are columns of their own."""
