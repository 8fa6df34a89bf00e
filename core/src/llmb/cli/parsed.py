"""Parsed logs as JSON, CSV and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import typer

from llmb.cli.results import number
from llmb.cli.tables import ABSENT, Column, print_table
from llmb.engine.parsing import ParsedLog
from llmb.engine.record import steps_csv as csv_of_steps

NAME = 40
"""How narrow the column of names may become, in characters: they go on in the next line."""

SUMMARY = ("count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std")


def several(logs: Sequence[ParsedLog], *, full_names: bool) -> dict[str, Any]:
    """The JSON of several logs."""
    return {
        "logs": [{"experiment": _name(log, full_names), "path": str(log.path), **log.as_dict()} for log in logs],
        "summary": _counts(logs),
    }


def _counts(logs: Sequence[ParsedLog]) -> dict[str, int]:
    succeeded = sum(log.succeeded for log in logs)
    return {"succeeded": succeeded, "failed": len(logs) - succeeded}


def _name(log: ParsedLog, full_names: bool) -> str:
    return log.path.name if full_names else log.experiment


def steps_csv(log: ParsedLog) -> str:
    """One line a step."""
    return csv_of_steps(log.series.steps)


def logs_csv(logs: Sequence[ParsedLog], *, full_names: bool) -> str:
    """One line a log; the path is last, since experiments of several folders may have the same name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", "status", *SUMMARY, "path"])
    for log in logs:
        table = log.summary.as_dict()
        writer.writerow([_name(log, full_names), log.status, *(table[name] for name in SUMMARY), log.path])
    return text.getvalue()


def print_one(log: ParsedLog) -> None:
    """The steps, then the mean, then why it broke if it did."""
    if log.series.steps:
        _print_steps(log)
        typer.echo(_mean(log))
    if log.failure:
        typer.echo(f"{log.failure.cause}: {log.failure.evidence} (line {log.failure.line}); {log.failure.remedy}")


def _print_steps(log: ParsedLog) -> None:
    titles = ("step", "time s", "TFLOP/s per GPU", "tokens/s per GPU", "loss")
    rows = []
    for step in log.series.steps:
        cells = (step.time_s, step.tflops_per_gpu, step.tokens_per_s_per_gpu, step.loss)
        rows.append((str(step.step), *map(number, cells)))
    print_table([Column(title, right=True) for title in titles], rows)


def _mean(log: ParsedLog) -> str:
    summary = log.summary
    window = "last step" if summary.window == "last" else f"steps {summary.window[0]} to {summary.window[1]}"
    parts = [f"{log.status}, {len(log.series.steps)} steps"]
    if summary.step_time_s is None:
        parts.append(f"the {window} has no time" if summary.window == "last" else f"none of {window} has a time")
    else:
        spread = f" (standard deviation {number(summary.step_time_std_s)})" if summary.step_time_std_s else ""
        partly = "" if summary.complete else f", {summary.count} of them measured"
        parts.append(f"{window}{partly}: {number(summary.step_time_s)} s{spread}")
    if summary.tflops_per_gpu is not None:
        parts.append(f"{number(summary.tflops_per_gpu)} TFLOP/s per GPU")
    if summary.mean_of > 1:
        parts.append(f"printed as means of {summary.mean_of} steps")
    return ", ".join(parts)


def print_several(logs: Sequence[ParsedLog], *, full_names: bool) -> None:
    """One line a log, then how many succeeded; nothing where there is no log."""
    if not logs:
        return
    titles = ("Time Std (ms)", "TFLOPS_per_GPU Mean", "TFLOPS_per_GPU Std")
    columns = [Column("Experiment", wraps=NAME), Column("Status"), Column("Time Mean (ms)", right=True)]
    columns += [Column(title, right=True, optional=True) for title in titles]
    rows = []
    for log in logs:
        status = "Success" if log.succeeded else "Failed"
        rows.append(
            (_name(log, full_names), status, *(_figures(log) if log.succeeded else (_shortfall(log), "", "", "")))
        )
    print_table(columns, rows)
    counts, summary = _counts(logs), logs[0].summary
    where = "the last step" if summary.window == "last" else f"steps {summary.window[0]} to {summary.window[1]}"
    typer.echo(f"{counts['succeeded']} succeeded, {counts['failed']} failed; mean of {where}")


def _figures(log: ParsedLog) -> tuple[str, ...]:
    summary = log.summary
    times = (summary.step_time_s, summary.step_time_std_s)
    rates = (summary.tflops_per_gpu, summary.tflops_per_gpu_std)
    return (
        *(ABSENT if time is None else f"{1000 * time:.3f}" for time in times),
        *(ABSENT if rate is None else f"{rate:.2f}" for rate in rates),
    )


def _shortfall(log: ParsedLog) -> str:
    """How far a log got that is no result."""
    last = log.series.last_step
    if last is None:
        return "(no step)"
    if log.status == "nan":
        return f"(NaN by step {last.step})"
    return f"(broke at step {last.step})" if log.failure and log.summary.complete else f"({last.step} steps)"
