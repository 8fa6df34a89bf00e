"""Runs as text: a block for each run, or one line per run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.metrics import NAMED_VALUES, metric_rows
from llmb.cli.views.sweep import describe_differences, describe_sweep
from llmb.cli.views.tables import Column, counted, format_number, print_table

SWEEP_WIDTH = 18
"""The least width of the column of sweep values, in characters."""

STYLES = {
    "completed": "green",
    "failed": "red",
    "timeout": "red",
    "lost": "red",
    "cancelled": "yellow",
    "pass": "green",
    "fail": "red",
    "undecided": "yellow",
}


def print_results(results: Iterable[llmb.RunResult]) -> None:
    """Print one block per run: state, metrics, verdict, reason, failure, notes, and the folder of its record."""
    console = output.console()
    for result in results:
        console.print(_heading(result), soft_wrap=True)
        rows = [*_sweep_rows(result), *_metric_rows(result), *_verdict_rows(result), *_failure_rows(result.failure)]
        rows += [*(("note", note) for note in result.notes), ("record", result.directory)]
        print_table(NAMED_VALUES, [(f"  {name}", value) for name, value in rows])


def _heading(result: llmb.RunResult) -> Text:
    heading = Text(result.run_id, style="bold")
    heading.append(f"  {result.state}", style=STYLES.get(result.state, ""))
    return heading


def _sweep_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    repeat = f"{result.repeat} of {result.repeats}" if result.repeats > 1 else ""
    return _filled(("sweep", describe_sweep(result.sweep)), ("repeat", repeat))


def _metric_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    """Return the metrics, each marked if the measuring window is incomplete."""
    rows = metric_rows(result.metrics)
    if result.metrics is None or result.window_complete is not False:
        return rows
    if not rows:
        return [("metrics", "none: no step of the measuring window was measured")]
    mark, explanation = "in part", "the measuring window is incomplete"
    if result.steps and result.steps_done is not None and result.steps_done < result.steps:
        mark = "so far"
        explanation = f"{result.steps_done} of {counted(result.steps, 'step')}: {explanation}"
    return [(mark, explanation), *((name if name == "note" else f"{name} {mark}", value) for name, value in rows)]


def _verdict_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    cause = result.failure.cause if result.failure else None
    reason = "" if result.reason == cause else result.reason
    if result.verdict is None and result.state == "completed":
        return [("verdict", f"none: {reason}")] if reason else []
    return _filled(("verdict", result.verdict), ("reason", reason))


def _failure_rows(failure: llmb.Failure | None) -> list[tuple[str, str]]:
    if failure is None:
        return []
    line = f" (line {failure.line})" if failure.line else ""
    evidence = failure.evidence + line if failure.evidence else ""
    return _filled(("cause", failure.cause), ("log", evidence), ("remedy", failure.remedy))


def _filled(*rows: tuple[str, str | None]) -> list[tuple[str, str]]:
    """Return the rows that have a value."""
    return [(name, value) for name, value in rows if value]


def print_run_list(runs: Sequence[llmb.RunResult]) -> None:
    """Print one line per run."""
    differences = describe_differences(runs)
    columns = [Column("run"), *([Column("sweep", wraps=SWEEP_WIDTH)] if any(differences) else [])]
    columns += [Column("state"), Column("verdict", optional=True)]
    columns += [Column(title, right=True, optional=True) for title in ("step time s", "MFU %", "tokens/s", "created")]
    rows = [_line(run, [each] if any(differences) else []) for run, each in zip(runs, differences, strict=True)]
    print_table(columns, rows)


def _line(run: llmb.RunResult, differences: Sequence[str]) -> tuple[str | Text, ...]:
    metrics = run.metrics if run.window_complete is not False else None  # a list compares, so it omits partial metrics
    mfu = metrics.mfu if metrics else None
    return (
        run.run_id,
        *differences,
        Text(run.state, STYLES.get(run.state, "")),
        Text(run.verdict or "", STYLES.get(run.verdict or "", "")),
        format_number(metrics.step_time_s if metrics else None),
        f"{100 * mfu:.2f}" if mfu is not None else "",
        format_number(metrics.tokens_per_s if metrics else None),
        (run.created or "").replace("T", " ").partition(".")[0].removesuffix("+00:00"),
    )
