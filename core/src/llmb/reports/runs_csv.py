"""Runs as CSV (RFC 4180): one row per run."""

import csv
import io
from collections.abc import Iterable
from typing import Any

from llmb.values.frozen import table_of
from llmb.values.report_content import ReportedRun
from llmb.values.types.check_arguments import check_arguments

COLUMNS = (
    *("run_id", "created", "recipe", "release", "framework", "gpu_type", "dtype", "gpus", "variant", "repeat"),
    *("repeats", "state", "verdict", "reason", "step_time_s", "step_time_std_s", "step_time_ratio", "interval_low"),
    *("interval_high", "tokens_per_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu", "days_per_1t_tokens"),
    *("published_step_time_s", "window", "steady_first", "steady_last", "steady_step_time_s", "image", "target"),
    "directory",
)
FORMULA_STARTS = ("=", "+", "-", "@")
"""Characters at which a spreadsheet takes a text for a formula."""


@check_arguments
def runs_csv(runs: Iterable[ReportedRun]) -> str:
    """Return a CSV with one row per run. Unknown values are empty, and fractions stay fractions."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in _row(run).items()} for run in runs)
    return text.getvalue()


def _row(run: ReportedRun) -> dict[str, Any]:
    result = run.result
    metrics, window, steady = (table_of(result, name) for name in ("metrics", "window", "steady_state"))
    baseline = table_of(metrics, "baseline")
    published_s = baseline.get("step_time_s")
    if result.get("window_complete") is False:  # as in the list of runs: rows are compared with each other
        metrics, window, baseline = {}, {}, {}
    low, high = result.get("interval") or (None, None)
    first, last = window.get("first"), window.get("last")
    return {
        **metrics,
        **result,
        "release": run.release,
        "framework": run.framework,
        "step_time_std_s": window.get("step_time_std_s"),
        "step_time_ratio": baseline.get("step_time_ratio"),
        "interval_low": low,
        "interval_high": high,
        "published_step_time_s": published_s,
        "window": None if first is None else f"{first}:{last}",
        "steady_first": steady.get("first"),
        "steady_last": steady.get("last"),
        "steady_step_time_s": steady.get("step_time_s"),
        "image": run.image,
        "target": run.target,
    }


def _cell(value: Any) -> Any:
    """Return the value of a cell. Text that a spreadsheet would execute gets a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
