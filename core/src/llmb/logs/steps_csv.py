"""Steps as CSV, for ``steps.csv`` of a record and ``llmb parse --csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from llmb.values.steps import Step

COLUMNS = ("step", "time_s", "loss", "tflops_per_gpu", "tokens_per_s_per_gpu", "mean_of", "attempt")


def steps_csv(steps: Iterable[Step]) -> str:
    """Return a CSV with one line per step: the common columns, then everything else that was printed."""
    rows = [(step, {name: getattr(step, name) for name in COLUMNS}) for step in steps]
    more = sorted({name for step, _ in rows for name in step.figures})
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *more], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | dict(step.figures) for step, row in rows)
    return text.getvalue()
