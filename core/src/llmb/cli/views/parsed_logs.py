"""Parsed logs as JSON, CSV and tables."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from llmb.analysis.window import outlier_median_s
from llmb.cli import output
from llmb.cli.views.tables import ABSENT, Column, print_table
from llmb.cli.views.text import counted, format_number
from llmb.drive.record import steps_csv as csv_of_steps
from llmb.parsing.directories import ParsedPath
from llmb.parsing.parse import ParsedLog
from llmb.values.recipe import Window

MOST_NAMES = 3
"""Files that a line names."""

NAME = 30
"""How narrow the column of names may become, in characters: they go on in the next line."""

REASON = 20
"""The same of why a log is no result."""

SUMMARY = ("count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std")


def logs_document(read: Sequence[ParsedPath], *, full_names: bool) -> dict[str, Any]:
    """The JSON of several logs; ``reason`` is why one is no result, ``passed_over`` is there where files were."""
    found = [log for each in read for log in each.logs]
    passed_over = [{"path": str(file.path), "reason": file.reason} for each in read for file in each.passed_over]
    return {
        "logs": [
            {"experiment": _name(log, full_names), "path": str(log.path), **log.as_dict(), "reason": log.reason}
            for log in found
        ],
        "summary": _counts(found),
        **({"passed_over": passed_over} if passed_over else {}),
    }


def passed_over_lines(read: Sequence[ParsedPath]) -> Iterator[str]:
    """Which files of a directory were passed over: a line for each reason, with some of their names."""
    for each in read:
        for reason in dict.fromkeys(file.reason for file in each.passed_over):
            names = [str(file.path.relative_to(each.path)) for file in each.passed_over if file.reason == reason]
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            shown = ", ".join(names[:MOST_NAMES]) + more
            yield f"{each.path}: passed over {counted(len(names), 'file')} ({shown}): {reason}"


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


def print_log(log: ParsedLog) -> None:
    """The steps, then the mean, then why it broke if it did."""
    if log.series.steps:
        _print_steps(log)
        output.print_text(_mean(log))
        _print_if_unusual(log)
    if log.failure:
        output.print_text(
            f"{log.failure.cause}: {log.failure.evidence} (line {log.failure.line}); {log.failure.remedy}"
        )


def _print_steps(log: ParsedLog) -> None:
    titles = ("step", "time s", "TFLOP/s per GPU", "tokens/s per GPU", "loss")
    rows = []
    for step in log.series.steps:
        cells = (step.time_s, step.tflops_per_gpu, step.tokens_per_s_per_gpu, step.loss)
        rows.append((str(step.step), *map(format_number, cells)))
    print_table([Column(title, right=True) for title in titles], rows)


def _mean(log: ParsedLog) -> str:
    summary, window = log.summary, _told(log.summary.window)
    parts = [f"{log.status}, {counted(len(log.steps), 'step')}"]
    if summary.step_time_s is None:
        parts.append(_why_no_mean(log))
    else:
        spread = f" (standard deviation {format_number(summary.step_time_std_s)})" if summary.step_time_std_s else ""
        partly = "" if summary.complete else f", {summary.count} of them measured"
        parts.append(f"{window.removeprefix('the ')}{partly}: {format_number(summary.step_time_s)} s{spread}")
    if summary.tflops_per_gpu is not None:
        parts.append(f"{format_number(summary.tflops_per_gpu)} TFLOP/s per GPU")
    if summary.mean_of > 1:
        parts.append(f"printed as means of {summary.mean_of} steps")
    return ", ".join(parts)


def _told(window: Window) -> str:
    if window == "last":
        return "the last step"
    first, last = window
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _why_no_mean(log: ParsedLog) -> str:
    window = _told(log.summary.window)
    if log.summary.printed:
        return f"{window} {'have' if window.startswith('steps') else 'has'} no time"
    return f"it has no {window}, but {_told((log.steps[0].step, log.steps[-1].step))}; see --window"


def _print_if_unusual(log: ParsedLog) -> None:
    """A word where the one step that the figures are of is unlike the others: an acceptance would rest on it."""
    median_s = outlier_median_s(log.steps, log.summary)
    if median_s is not None and log.summary.step_time_s is not None:
        times = format_number(log.summary.step_time_s / median_s)
        output.print_text(
            f"note: {_told(log.summary.window)} took {times} times the median of all ({format_number(median_s)} s); "
            "--window FIRST:LAST takes the mean of several"
        )


def print_logs(logs: Sequence[ParsedLog], *, full_names: bool) -> None:
    """One line a log, then how many succeeded; nothing where there is no log."""
    if not logs:
        return
    titles = ("Time Std (ms)", "TFLOPS_per_GPU Mean", "TFLOPS_per_GPU Std")
    columns = [Column("Experiment", wraps=NAME), Column("Status"), Column("Time Mean (ms)", right=True)]
    columns += [Column(title, right=True, optional=True) for title in titles]
    rows = [(name, *_row(log)) for name, log in zip(_distinct_names(logs, full_names), logs, strict=True)]
    if any(log.reason for log in logs):
        columns.append(Column("Reason", wraps=REASON))
        rows = [(*row, log.reason or "") for row, log in zip(rows, logs, strict=True)]
    print_table(columns, rows)
    counts, summary = _counts(logs), logs[0].summary
    output.print_text(f"{counts['succeeded']} succeeded, {counts['failed']} failed; mean of {_told(summary.window)}")


def _distinct_names(logs: Sequence[ParsedLog], full_names: bool) -> list[str]:
    """The logs' names; where several have the same, behind the part of their paths in which they differ."""
    names, alike = [_name(log, full_names) for log in logs], defaultdict[str, list[int]](list)
    for place, name in enumerate(names):
        alike[name].append(place)
    for places in alike.values():
        if len(places) > 1:
            paths = [logs[place].path for place in places]
            side_by_side = len({path.parent for path in paths}) < len(paths)
            for place, path, folder in zip(places, paths, _differing_folders(paths), strict=True):
                names[place] = str(folder / (path.name if side_by_side else names[place]))
    return names


def _differing_folders(paths: Sequence[Path]) -> list[Path]:
    """The folders of the paths, without those that begin or end all of them."""
    folders = [path.parent.parts for path in paths]
    for _ in range(2):  # the beginnings, then the ends
        same = len([*takewhile(lambda parts: len({*parts}) == 1, zip(*folders, strict=False))])
        folders = [folder[same:][::-1] for folder in folders]
    return [Path(*folder) for folder in folders]


def _row(log: ParsedLog) -> tuple[str, ...]:
    if log.succeeded:
        return ("Success", *_figures(log))
    last = log.series.last_step
    return ("Failed", "(no step)" if last is None else f"(last step {last.step})", "", "", "")


def _figures(log: ParsedLog) -> tuple[str, ...]:
    summary = log.summary
    times = (summary.step_time_s, summary.step_time_std_s)
    rates = (summary.tflops_per_gpu, summary.tflops_per_gpu_std)
    return (
        *(ABSENT if time is None else f"{1000 * time:.3f}" for time in times),
        *(ABSENT if rate is None else f"{rate:.2f}" for rate in rates),
    )
