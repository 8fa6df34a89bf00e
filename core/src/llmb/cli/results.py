"""Runs, plugins and checks as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from llmb.analysis.metrics import Metrics
from llmb.cli.sweeps import differing_values, swept_values
from llmb.cli.tables import Column, print_table
from llmb.drive.result import RunResult
from llmb.plugins.list import PluginInfo
from llmb.values.doctor_check import DoctorCheck
from llmb.values.error_text import counted
from llmb.values.failure import Failure

PROSE = 30
"""How narrow a column of text may become, in characters."""

SWEPT = 18
"""The same of the values of a sweep, which go on in the next line between them."""

NAMED_VALUES = (Column(style="dim"), Column(wraps=PROSE))

SAME_MFU = 0.03
"""How far the two ways to have the MFU may lie apart, relative to the logged one."""

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


def print_results(results: Iterable[RunResult]) -> None:
    """One block a run: state, figures, verdict, the reason, and where its record is."""
    console = Console(highlight=False)
    for result in results:
        console.print(_heading(result), soft_wrap=True)
        rows = [*_of_sweep(result), *_figures_of_run(result), *_judgement(result), *_failure(result.failure)]
        rows.append(("record", result.directory))
        print_table(NAMED_VALUES, [(f"  {name}", value) for name, value in rows])


def _heading(result: RunResult) -> Text:
    heading = Text(result.run_id, style="bold")
    heading.append(f"  {result.state}", style=STYLES.get(result.state, ""))
    return heading


def _of_sweep(result: RunResult) -> list[tuple[str, str]]:
    repeat = f"{result.repeat} of {result.repeats}" if result.repeats > 1 else ""
    return [(name, value) for name, value in (("sweep", swept_values(result.sweep)), ("repeat", repeat)) if value]


def _figures_of_run(result: RunResult) -> list[tuple[str, str]]:
    """The figures, each marked where it is not what was to be measured."""
    rows = _figures(result.metrics)
    if result.metrics is None or result.window_complete is not False:
        return rows
    if not rows:
        return [("figures", "none: no step of the measuring window was measured")]
    mark, what = "in part", "the measuring window is not complete"
    if result.steps and result.steps_done is not None and result.steps_done < result.steps:
        mark, what = "so far", f"{result.steps_done} of {counted(result.steps, 'step')}: {what}"
    return [(mark, what), *((name if name == "note" else f"{name} {mark}", value) for name, value in rows)]


def _figures(metrics: Metrics | None) -> list[tuple[str, str]]:
    if metrics is None:
        return []
    rows = [
        ("step time", number(metrics.step_time_s, "s")),
        ("tokens/s", number(metrics.tokens_per_s)),
        ("TFLOP/s per GPU", _tflops(metrics)),
        ("MFU", _mfu(metrics)),
        ("note", _why_no_mfu(metrics)),
        ("note", _two_mfu(metrics)),
        ("note", _beyond_peak(metrics)),
        ("days to 1T tokens", number(metrics.days_per_1t_tokens)),
    ]
    return [(name, value) for name, value in rows if value]


def _tflops(metrics: Metrics) -> str:
    """From the step time; where the log tells another figure, which the MFU may be of, both."""
    logged, computed = _logged_tflops(metrics), number(metrics.model_tflops_per_gpu)
    return f"{logged} logged, {computed} by step time" if logged else computed


def _logged_tflops(metrics: Metrics) -> str:
    """What the log tells, where that is not what the step time comes to."""
    if metrics.mfu_logged is None or metrics.mfu_computed is None or metrics.peak_flops is None:
        return ""
    logged = number(metrics.mfu_logged * metrics.peak_flops / 1e12)
    return "" if logged == number(metrics.model_tflops_per_gpu) else logged


def _mfu(metrics: Metrics) -> str:
    """With what it is of, where there are two figures that it could be of."""
    if metrics.mfu is None or metrics.peak_flops is None:
        return ""
    basis = "logged" if metrics.mfu == metrics.mfu_logged else "by step time"
    of_two = f", {basis}" if _logged_tflops(metrics) else ""
    return f"{_of_peak(metrics.mfu, metrics.peak_flops)}{of_two}"


def _why_no_mfu(metrics: Metrics) -> str:
    """Why the publisher's MFU cannot be had of a step time, and the other one, which is never put in its place."""
    if metrics.step_time_s is None or metrics.mfu is not None:
        return ""
    if metrics.mfu_computed is None or metrics.peak_flops is None:
        return "no MFU: the peak of this GPU type and dtype is not known here"
    return (
        "the recipe's publisher has the MFU from logged TFLOP/s, and there are none (`llmb metrics --tflops-per-gpu`); "
        f"by step time it is {_of_peak(metrics.mfu_computed, metrics.peak_flops)}"
    )


def _of_peak(mfu: float, peak_flops: float) -> str:
    return f"{100 * mfu:.2f} % of {number(peak_flops / 1e12)} TFLOP/s"


def _two_mfu(metrics: Metrics) -> str:
    """A word on the two ways to have the MFU, where they tell different things of the same run."""
    logged, computed = metrics.mfu_logged, metrics.mfu_computed
    if logged is None or computed is None or abs(computed / logged - 1) <= SAME_MFU:
        return ""
    return (
        f"MFU is {100 * logged:.2f} % by the logged TFLOP/s and {100 * computed:.2f} % by step time and the recipe's "
        "formula: one of them counts other FLOPs, the log's figures are not of the same steps, or steps differed much"
    )


def _beyond_peak(metrics: Metrics) -> str:
    if metrics.mfu is None or metrics.mfu <= 1:
        return ""
    return (
        "an MFU above 100 % cannot be: the peak is of less than what ran, or the step time or the FLOPs are not of it"
    )


def number(value: float | None, unit: str = "") -> str:
    """Four figures at most, thousands apart; nothing for an absent figure."""
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def _judgement(result: RunResult) -> list[tuple[str, str]]:
    cause = result.failure.cause if result.failure else None
    reason = "" if result.reason == cause else result.reason
    if result.verdict is None and result.state == "completed":
        return [("verdict", f"none: {reason}")] if reason else []
    return [(name, value) for name, value in (("verdict", result.verdict), ("reason", reason)) if value]


def _failure(failure: Failure | None) -> list[tuple[str, str]]:
    if failure is None:
        return []
    line = f" (line {failure.line})" if failure.line else ""
    rows = [
        ("cause", failure.cause),
        ("log says", failure.evidence + line if failure.evidence else ""),
        ("what to do", failure.remedy),
    ]
    return [(name, value) for name, value in rows if value]


def print_runs(runs: Iterable[RunResult]) -> None:
    """One line a run."""
    runs = list(runs)
    swept = differing_values(runs)
    columns = [Column("run"), *([Column("sweep", wraps=SWEPT)] if any(swept) else [])]
    columns += [Column("state"), Column("verdict", optional=True)]
    columns += [Column(title, right=True, optional=True) for title in ("step time s", "MFU %", "tokens/s", "created")]
    print_table(columns, [_brief(run, [each] if any(swept) else []) for run, each in zip(runs, swept, strict=True)])


def _brief(run: RunResult, swept: Sequence[str]) -> tuple[str | Text, ...]:
    metrics = run.metrics if run.window_complete is not False else None  # a list compares: no figures of a part
    mfu = metrics.mfu if metrics else None
    return (
        run.run_id,
        *swept,
        Text(run.state, STYLES.get(run.state, "")),
        Text(run.verdict or "", STYLES.get(run.verdict or "", "")),
        number(metrics.step_time_s if metrics else None),
        f"{100 * mfu:.2f}" if mfu is not None else "",
        number(metrics.tokens_per_s if metrics else None),
        (run.created or "").replace("T", " ").partition(".")[0].removesuffix("+00:00"),
    )


def print_metrics(metrics: Metrics) -> None:
    """The figures, one a line, and the published ones beside them."""
    rows = _figures(metrics)
    if baseline := metrics.baseline:
        published = f"{number(baseline.step_time_s, 's')}, release {baseline.release}"
        rows.append(("published", f"{published}; measured is {number(baseline.step_time_ratio)} x that"))
    print_table(NAMED_VALUES, rows)


def print_plugins(plugins: Iterable[PluginInfo]) -> None:
    """One line a plugin, with its hooks or with what is wrong with it."""
    titles = ("kind", "name", "distribution", "version")
    rows = [
        (*(getattr(plugin, title) for title in titles), Text(plugin.error or "", "red") or ", ".join(plugin.hooks))
        for plugin in plugins
    ]
    print_table([*map(Column, titles), Column("hooks", wraps=20)], rows)


MARKS = {True: ("ok", "green"), False: ("missing", "red"), None: ("-", "")}  # text, style


def print_checks(checks: Iterable[DoctorCheck]) -> None:
    """One line a check, and below those that fail what to do."""
    rows: list[tuple[str | Text, ...]] = []
    for check in checks:
        rows.append((Text(*MARKS[check.ok]), check.name, check.detail))
        if check.remedy and not check.ok:
            rows.append(("", "", Text(check.remedy, "yellow")))
    print_table([Column(), Column(), Column(wraps=PROSE)], rows)
