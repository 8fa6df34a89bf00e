"""Steps as CSV, for ``steps.csv`` of a record and ``llmb parse --csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from llmb.values.steps import COLUMNS, Step

INTEGERS = ("step", "mean_of", "attempt")

StepColumns = dict[str, list[float | None]]
"""Steps by column, as pandas and polars take them: ``pandas.DataFrame(columns)``. Unknown values are None."""


def steps_csv(steps: Iterable[Step]) -> str:
    """Return a CSV with one line per step: the common columns, then everything else that was printed."""
    rows = [(step, {name: getattr(step, name) for name in COLUMNS}) for step in steps]
    more = sorted({name for step, _ in rows for name in step.other_values} - {*COLUMNS})
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *more], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dict(step.other_values) | row for step, row in rows)
    return text.getvalue()


def read_steps_csv(text: str) -> StepColumns:
    """Return the columns of `steps_csv`, of equal length. Raise ValueError if the text is damaged."""
    header, *rows = csv.reader(io.StringIO(text))
    columns: StepColumns = {}
    cells_by_column = zip(*rows, strict=True) if rows else [()] * len(header)
    for name, cells in zip(header, cells_by_column, strict=True):
        values = [float(cell) if cell else None for cell in cells]
        columns[name] = [None if each is None else int(each) for each in values] if name in INTEGERS else values
    return columns
