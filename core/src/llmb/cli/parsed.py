"""Parsed logs as JSON, CSV and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import typer

from llmb.cli.results import number, plain_table, print_table
from llmb.engine.parsing import ParsedLog
from llmb.engine.record import steps_csv as csv_of_steps
from llmb.figures.window import to_json as summary_table

SUMMARY = ("count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std")


def several(logs: Sequence[ParsedLog]) -> dict[str, Any]:
    """The JSON of several logs."""
    succeeded = sum(log.status == "complete" for log in logs)
    return {
        "logs": [{"experiment": log.path.stem, "path": str(log.path), **log.table} for log in logs],
        "summary": {"succeeded": succeeded, "failed": len(logs) - succeeded},
    }


def steps_csv(log: ParsedLog) -> str:
    """One line a step."""
    return csv_of_steps(log.series.steps)


def logs_csv(logs: Sequence[ParsedLog]) -> str:
    """One line a log; the path is last, since experiments of several folders may have the same name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", "status", *SUMMARY, "path"])
    for log in logs:
        table = summary_table(log.summary)
        writer.writerow([log.path.stem, log.status, *(table[name] for name in SUMMARY), log.path])
    return text.getvalue()


def print_one(log: ParsedLog) -> None:
    """The steps, then the mean, then why it broke if it did."""
    if log.series.steps:
        _print_steps(log)
        typer.echo(_mean(log))
    if log.failure:
        typer.echo(f"{log.failure.cause}: {log.failure.evidence} (line {log.failure.line}); {log.failure.remedy}")


def _print_steps(log: ParsedLog) -> None:
    table = plain_table(right=("step", "time s", "TFLOP/s per GPU", "tokens/s per GPU", "loss"))
    for step in log.series.steps:
        cells = (step.time_s, step.tflops_per_gpu, step.tokens_per_s_per_gpu, step.loss)
        table.add_row(str(step.step), *(number(cell) for cell in cells))
    print_table(table)


def _mean(log: ParsedLog) -> str:
    summary = log.summary
    window = "last step" if summary.window == "last" else f"steps {summary.window[0]} to {summary.window[1]}"
    parts = [f"{log.status}, {len(log.series.steps)} steps"]
    if summary.step_time_s is not None:
        spread = f" (standard deviation {number(summary.step_time_std_s)})" if summary.step_time_std_s else ""
        parts.append(f"{window}: {number(summary.step_time_s)} s{spread}")
    if summary.tflops_per_gpu is not None:
        parts.append(f"{number(summary.tflops_per_gpu)} TFLOP/s per GPU")
    return ", ".join(parts)


def print_several(logs: Sequence[ParsedLog]) -> None:
    """One line a log, then how many succeeded; nothing where there is no log."""
    if not logs:
        return
    columns = ("time mean s", "time std s", "TFLOP/s per GPU mean", "TFLOP/s per GPU std")
    table = plain_table(left=("experiment", "status"), right=columns)
    for log in logs:
        figures = summary_table(log.summary)
        table.add_row(log.path.stem, log.status, *(number(figures[name]) for name in SUMMARY[1:]))
    print_table(table)
    counts = several(logs)["summary"]
    typer.echo(f"{counts['succeeded']} succeeded, {counts['failed']} failed")
