"""Parsed logs as tables, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import llmb
from llmb.cli import output
from llmb.cli.views.metrics import print_named_values
from llmb.cli.views.numbers import describe_steps, format_number
from llmb.cli.views.run_details import describe_steady_state, failure_rows
from llmb.cli.views.tables import ABSENT, Column, print_table

FIRST_STEPS = 3
"""Steps at the beginning of a log that are shown."""

LAST_STEPS = 5
"""Steps at the end of a log that are shown."""

NAMED_FILES = 3
"""The number of passed-over files that a line names."""

STREAMS = ("stdout", "stderr")
"""Names of logs that launchers write into a folder of each process."""

SUMMARY_KEYS = ("count", "step_time_s", "step_time_std_s", "tflops_per_gpu", "tflops_per_gpu_std")


def logs_document(parsed: Sequence[llmb.ParsedPath], *, full_names: bool) -> dict[str, Any]:
    """Return several logs as ``llmb parse --json`` prints them. ``passed_over`` is present only if files were."""
    logs = [log for each in parsed for log in each.logs]
    passed_over = [{"path": str(file.path), "reason": file.reason} for each in parsed for file in each.passed_over]
    return {
        "logs": [
            {"experiment": _name(log, full_names), "path": str(log.path), **log.as_dict(), "reason": log.reason}
            for log in logs
        ],
        "summary": _count_successes(logs),
        **({"passed_over": passed_over} if passed_over else {}),
    }


def passed_over_lines(parsed: Sequence[llmb.ParsedPath]) -> Iterator[str]:
    """Yield a line for each reason to pass over files of a directory, with the first names."""
    for each in parsed:
        for reason in dict.fromkeys(file.reason for file in each.passed_over):
            names = [str(file.path.relative_to(each.path)) for file in each.passed_over if file.reason == reason]
            shown = llmb.first_names(names, NAMED_FILES)
            yield f"{each.path}: passed over {llmb.counted(len(names), 'file')} ({shown}): {reason}"


def _count_successes(logs: Sequence[llmb.ParsedLog]) -> dict[str, int]:
    succeeded = sum(log.succeeded for log in logs)
    return {"succeeded": succeeded, "failed": len(logs) - succeeded}


def _name(log: llmb.ParsedLog, full_names: bool) -> str:
    return log.path.name if full_names else log.experiment


def logs_csv(logs: Sequence[llmb.ParsedLog], *, full_names: bool) -> str:
    """Return one line per log, with the path, because experiments in several folders may have the same name."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", "status", *SUMMARY_KEYS, "path"])
    for log in logs:
        summary = log.summary.as_dict()
        writer.writerow([_name(log, full_names), log.status, *(summary[key] for key in SUMMARY_KEYS), log.path])
    return text.getvalue()


def print_log(log: llmb.ParsedLog) -> None:
    """Print the first and the last steps, the mean over the window, the steady state, and the cause of a failure."""
    if log.series.steps:
        _print_steps(log.series.steps)
        output.print_prose(_describe_mean(log))
        _print_steady_state(log)
        _print_outlier_note(log)
        _print_unused_values(log)
    if log.failure:
        print_named_values(failure_rows(log.failure))


def _print_unused_values(log: llmb.ParsedLog) -> None:
    """Print a note on values of the log that need the sizes of the run, if no recipe supplies them."""
    unused = [name for notice in log.series.notices if notice.kind == "run unknown" for name in notice.text.split(", ")]
    if names := ", ".join(dict.fromkeys(unused)):
        lines = "; without them, each line counts as a step" if "samples" in unused else ""
        output.print_prose(f"note: --recipe and --gpus supply the run's sizes, which llmb needs for {names}{lines}")


def _print_steps(steps: Sequence[llmb.Step]) -> None:
    """Print a line per step or, if there are many, the first and the last ones."""
    left_out = len(steps) - FIRST_STEPS - LAST_STEPS
    shown = steps if left_out < 2 else [*steps[:FIRST_STEPS], *steps[-LAST_STEPS:]]
    titles = ("step", "time s", "TFLOP/s per GPU", "tokens/s per GPU", "loss")
    rows = []
    for step in shown:
        values = (step.time_s, step.tflops_per_gpu, step.tokens_per_s_per_gpu, step.loss)
        rows.append((str(step.step), *map(format_number, values)))
    if left_out >= 2:
        rows.insert(FIRST_STEPS, ("...", *[""] * (len(titles) - 1)))
    print_table([Column(title, right=True, optional=number > 1) for number, title in enumerate(titles)], rows)
    if left_out >= 2:
        all_steps = llmb.counted(len(steps), "step")
        output.print_prose(f"{format_number(left_out)} of {all_steps} left out; --csv prints all")


def _describe_mean(log: llmb.ParsedLog) -> str:
    summary, window = log.summary, _describe_window(log.summary.window)
    missing = log.series.missing_end if log.status == "incomplete" else ""
    parts = [f"{log.status}{f' (the log lacks {missing})' if missing else ''}, {_count_steps(log)}"]
    if log.runs_in_log > 1:
        parts.append(f"run {log.run} of {log.runs_in_log} in the log")
    if summary.step_time_s is None:
        parts.append(_describe_missing_mean(log))
    else:
        deviation = summary.step_time_std_s
        spread = f" (standard deviation {format_number(deviation)})" if deviation else ""
        measured = "" if summary.complete else f", {summary.count} of them measured"
        parts.append(f"{window.removeprefix('the ')}{measured}: {format_number(summary.step_time_s)} s{spread}")
    if summary.tflops_per_gpu is not None:
        parts.append(f"{format_number(summary.tflops_per_gpu)} TFLOP/s per GPU")
    if summary.mean_of > 1:
        parts.append(f"printed as means of {summary.mean_of} steps")
    return ", ".join(parts)


def _count_steps(log: llmb.ParsedLog) -> str:
    """Return the number of printed steps and of all steps, or of an incomplete run, how many of its steps were run."""
    total, printed = log.steps_requested or log.series.total_steps, len(log.steps)
    if total is None:
        is_known = log.status != "complete" or log.series.has_notice("finished")
        return llmb.counted(printed, "step") + ("" if is_known else " (total unknown)")
    if log.status == "incomplete":
        return f"{format_number(log.series.count)} of {llmb.counted(total, 'step')}"
    if printed < total:
        return f"{format_number(printed)} of {llmb.counted(total, 'step')} printed"
    return llmb.counted(printed, "step")


def _describe_window(window: llmb.Window) -> str:
    return "the last step" if window == "last" else describe_steps(*window)


def _describe_missing_mean(log: llmb.ParsedLog) -> str:
    window = _describe_window(log.summary.window)
    if log.summary.printed:
        return f"{window} {'have' if window.startswith('steps') else 'has'} no time"
    steps = _describe_window((log.steps[0].step, log.steps[-1].step))
    return f"{window} not found, the log has {steps}; see --window"


def _print_steady_state(log: llmb.ParsedLog) -> None:
    """Print the steady state, and if the window is missing, that its mean is a different one."""
    if state := log.steady_state:
        label = "" if log.summary.complete else " (not the window)"
        output.print_prose(f"steady state{label}: {describe_steady_state(state)}")


def _print_outlier_note(log: llmb.ParsedLog) -> None:
    """Print a note if the mean is of a single, unusual step, because a verdict would depend on that step."""
    median_s = log.outlier_median_s
    if median_s is not None and log.summary.step_time_s is not None:
        ratio = format_number(log.summary.step_time_s / median_s)
        output.print_prose(
            f"note: {_describe_window(log.summary.window)} took {ratio} times the median of all steps "
            f"({format_number(median_s)} s); use --window FIRST:LAST for the mean of several steps"
        )


def print_logs(logs: Sequence[llmb.ParsedLog], *, full_names: bool) -> None:
    """Print one line per log, then how many succeeded. Print nothing without logs."""
    if not logs:
        return
    titles = ("Time Std (ms)", "TFLOPS_per_GPU Mean", "TFLOPS_per_GPU Std")
    columns = [Column("Experiment", wraps=30), Column("Status"), Column("Time Mean (ms)", right=True)]
    columns += [Column(title, right=True, optional=True) for title in titles]
    rows = [(name, *_cells(log)) for name, log in zip(_distinct_names(logs, full_names), logs, strict=True)]
    if any(log.reason for log in logs):
        columns.append(Column("Reason", wraps=20))
        rows = [(*row, log.reason or "") for row, log in zip(rows, logs, strict=True)]
    print_table(columns, rows)
    counts, window = _count_successes(logs), _describe_window(logs[0].summary.window)
    output.print_text(f"{counts['succeeded']} succeeded, {counts['failed']} failed; mean of {window}")


def _distinct_names(logs: Sequence[llmb.ParsedLog], full_names: bool) -> list[str]:
    """Return the names of the logs. Put the differing part of their paths before names that are not unique."""
    names, indices = [_name(log, full_names) for log in logs], defaultdict[str, list[int]](list)
    for index, name in enumerate(names):
        indices["" if name in STREAMS else name].append(index)  # the folder names the process
    for same_name in indices.values():
        if len(same_name) > 1:
            paths = [logs[index].path for index in same_name]
            same_folder = len({(logs[index].path.parent, names[index]) for index in same_name}) < len(paths)
            for index, path, folder in zip(same_name, paths, _differing_folders(paths), strict=True):
                names[index] = str(folder / (path.name if same_folder else names[index]))
    return names


def _differing_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of the paths without the parts that all begin or end with."""
    folders = [path.parent.parts for path in paths]
    for _ in range(2):  # first the beginnings, then, on reversed folders, the ends
        same = len([*takewhile(lambda parts: len({*parts}) == 1, zip(*folders, strict=False))])
        folders = [folder[same:][::-1] for folder in folders]
    return [Path(*folder) for folder in folders]


def _cells(log: llmb.ParsedLog) -> tuple[str, ...]:
    if not log.succeeded:
        last = log.series.last_step
        return ("Failed", "(no step)" if last is None else f"(last step {last.step})", "", "", "")
    summary = log.summary
    times = (summary.step_time_s, summary.step_time_std_s)
    rates = (summary.tflops_per_gpu, summary.tflops_per_gpu_std)
    return (
        "Success",
        *(ABSENT if time is None else f"{1000 * time:.3f}" for time in times),
        *(ABSENT if rate is None else f"{rate:.2f}" for rate in rates),
    )
