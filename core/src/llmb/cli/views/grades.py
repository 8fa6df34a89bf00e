"""A grade as text: the verdict, the step times, and what the reader should know about the logs."""

from __future__ import annotations

import llmb
from llmb.cli.views.metrics import metric_notes, print_named_values
from llmb.cli.views.numbers import four_digits
from llmb.cli.views.run_details import describe_steady_state, failure_rows, slow_rank_rows
from llmb.cli.views.verdicts import print_verdict, published_row, rates_row, window_row


def print_grade(grade: llmb.Grade, *, own_window: bool) -> None:
    """Print the grade. ``own_window`` is True if the window is that of the recipe."""
    print_verdict(grade.verdict, grade.reason)
    rows = [
        published_row(grade.metrics),
        window_row(grade.window, _origin(grade, own_window)),
        ("steady state", describe_steady_state(grade.steady_state)),
        *_repeat_rows(grade),
        rates_row(grade.metrics),
        *slow_rank_rows(grade.rank_times),
        *failure_rows(grade.failure),
        ("recorded as", ", ".join(grade.runs)),
        *(("note", note) for note in (*grade.notes, *metric_notes(grade.metrics, [grade.reason]))),
    ]
    print_named_values((f"  {name}", value) for name, value in rows)


def _origin(grade: llmb.Grade, own_window: bool) -> str:
    if len(grade.repeats) > 1:
        return "the mean of the repeats that count"
    return "the window of this recipe" if own_window else "--window"


def _repeat_rows(grade: llmb.Grade) -> list[tuple[str, str]]:
    if len(grade.repeats) < 2:
        return []
    return [(f"repeat {number}", _describe_repeat(each)) for number, each in enumerate(grade.repeats, start=1)]


def _describe_repeat(repeat: llmb.GradedRepeat) -> str:
    parts = []
    if repeat.step_time_s is not None:
        parts.append(f"{four_digits(repeat.step_time_s)} s")
    if repeat.steady_step_time_s is not None:
        parts.append(f"steady state {four_digits(repeat.steady_step_time_s)} s")
    parts.append(repeat.path)
    return ", ".join(parts) + ("; left out" if repeat.left_out else "")
