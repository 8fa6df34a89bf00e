"""Results of runs as text: a block for each run."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.live_table import STATE_STYLES
from llmb.cli.views.metrics import metric_notes, metric_rows, print_named_values, tflops_row
from llmb.cli.views.run_details import (
    describe_last_progress,
    describe_stale_state,
    describe_steady_state,
    failure_rows,
    job_rows,
    slow_rank_rows,
)
from llmb.cli.views.sweep import describe_sweep
from llmb.cli.views.verdicts import STYLES as VERDICT_STYLES
from llmb.cli.views.verdicts import print_verdict, published_row, rates_row, window_row

MAX_LISTED = 4
"""Runs of a set of repeats that are named."""

STYLES = {**STATE_STYLES, **VERDICT_STYLES}


def print_results(results: Iterable[llmb.RunResult], sets: Iterable[llmb.RepeatSet] = ()) -> None:
    """Print one block per run: state, verdict, metrics, failure, notes, and the folder of its record.

    After the runs, print the verdict on each set of several repeats.
    """
    console = output.console()
    explained: dict[llmb.Failure, str] = {}
    for result in results:
        console.print(_heading(result), soft_wrap=True)
        if result.state == "completed" and result.reason:
            print_verdict(result.verdict, result.reason)
        rows = [
            ("sweep", describe_sweep(result.sweep)),
            ("repeat", f"{result.repeat} of {result.repeats}" if result.repeats > 1 else ""),
            *_metric_rows(result),
            *_ending_rows(result),
            *_failure_rows(result, explained),
            *job_rows(result),
            *slow_rank_rows(result.rank_times),
            *(("note", note) for note in result.notes),
            ("imported", "from an existing log" if result.imported else ""),
            ("record", result.directory),
        ]
        print_named_values((f"  {name}", value) for name, value in rows)
    runs: dict[str, str] = {}
    for failure, run_id in explained.items():
        runs.setdefault(failure.cause, run_id)
    for each in sets:
        if each.repeats > 1:
            heading = Text(f"{each.repeats} repeats", style="bold")
            print_named_values([(heading, llmb.first_names(each.runs, MAX_LISTED))])
            first = runs.get(each.reason)
            print_verdict(each.verdict, f"see the cause of {first}" if first else each.reason)


def _failure_rows(result: llmb.RunResult, explained: dict[llmb.Failure, str]) -> list[tuple[str, str]]:
    """Return the rows of a failure. If the job did not start, name an earlier run that failed for the same reason.

    All runs of a sweep fail together if one of their shared tasks fails. ``explained`` has the first run of each
    failure, to which this function adds.
    """
    if result.failure and not result.attempts:
        first = explained.setdefault(attrs.evolve(result.failure, remedy=""), result.run_id)
        if first != result.run_id:
            return [("cause", f"the same as for {first}")]
    return failure_rows(result.failure)


def _heading(result: llmb.RunResult) -> Text:
    heading = Text(result.run_id, style="bold")
    heading.append(f"  {result.state}", style=STYLES.get(result.state, ""))
    return heading


def _metric_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    """Return the metrics, each marked if the measuring window is incomplete."""
    steady = ("steady state", describe_steady_state(result.steady_state))
    if result.state == "completed" and result.window:
        window = window_row(result.window, "the window of this run")
        rates = (rates_row(result.metrics), tflops_row(result.metrics))
        notes = [("note", note) for note in metric_notes(result.metrics, [*result.notes, result.reason])]
        return [published_row(result.metrics), window, steady, *rates, *notes]
    rows = metric_rows(result.metrics, result.notes)
    if result.metrics is None or result.window_complete is not False:
        return rows
    if not rows:
        return [("metrics", "none: no step of the measuring window was measured"), steady]
    mark, explanation = "in part", "the measuring window is incomplete"
    if result.steps_requested and result.steps_done is not None and result.steps_done < result.steps_requested:
        explanation = f"{result.steps_done} of {llmb.counted(result.steps_requested, 'step')}: {explanation}"
    rows = [(name if name == "note" else f"{name} {mark}", value) for name, value in rows]
    return [(mark, explanation), *rows, steady]


def _ending_rows(result: llmb.RunResult) -> list[tuple[str, str]]:
    """Return the verdict on a run that did not complete, and why it ended; progress and job if it has not ended."""
    if result.state == "completed":
        return []
    if result.state not in llmb.END_STATES:
        rows = [("progress", describe_last_progress(result)), ("updated", describe_stale_state(result))]
        return [*rows, ("job", result.job_id or ""), ("reason", result.reason)]
    cause = result.failure.cause if result.failure else ""
    return [("verdict", result.verdict or ""), ("reason", "" if cause.endswith(result.reason) else result.reason)]
