"""Runs, plugins and checks as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from llmb.values.check import Check

PIPED_WIDTH = 400

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


def print_results(results: Iterable[dict[str, Any]]) -> None:
    """One block a run: state, figures, verdict, the reason, and where its record is."""
    console = Console(highlight=False)
    for result in results:
        console.print(_heading(result))
        rows = [*_figures(result["metrics"]), *_judgement(result), *_failure(result["failure"])]
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for name, value in [*rows, ("record", result["directory"])]:
            table.add_row(f"  {name}", Text(value))
        print_table(table)


def _heading(result: dict[str, Any]) -> Text:
    heading = Text(result["run_id"], style="bold")
    heading.append(f"  {result['state']}", style=STYLES.get(result["state"], ""))
    return heading


def _figures(metrics: dict[str, Any] | None) -> list[tuple[str, str]]:
    if metrics is None:
        return []
    rows = [
        ("step time", number(metrics["step_time_s"], "s")),
        ("tokens/s", number(metrics["tokens_per_s"])),
        ("TFLOP/s per GPU", _tflops(metrics)),
        ("MFU", _mfu(metrics)),
        ("note", _two_mfu(metrics)),
        ("days to 1T tokens", number(metrics["days_per_1t_tokens"])),
    ]
    return [(name, value) for name, value in rows if value]


def _tflops(metrics: dict[str, Any]) -> str:
    """From the step time; where the log tells another figure, which the MFU may be of, both."""
    computed = number(metrics["model_tflops_per_gpu"])
    if not _two_mfu(metrics):
        return computed
    return f"{number(metrics['mfu_logged'] * metrics['peak_flops'] / 1e12)} logged, {computed} by step time"


def _mfu(metrics: dict[str, Any]) -> str:
    if metrics["mfu"] is None:
        return ""
    return f"{100 * metrics['mfu']:.2f} % of {metrics['peak_flops'] / 1e12:.4g} TFLOP/s"


def _two_mfu(metrics: dict[str, Any]) -> str:
    """A word on the two ways to have the MFU, where they tell different things of the same run."""
    logged, computed = metrics["mfu_logged"], metrics["mfu_computed"]
    if logged is None or computed is None or abs(computed / logged - 1) <= SAME_MFU:
        return ""
    return (
        f"MFU is {100 * logged:.2f} % by the logged TFLOP/s and {100 * computed:.2f} % by step time and the recipe's "
        "formula: one of them counts other FLOPs, or the log's figures are not of the same steps"
    )


def number(value: float | None, unit: str = "") -> str:
    """Four figures at most, thousands apart; nothing for an absent figure."""
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def _judgement(result: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("verdict", result["verdict"])] if result["verdict"] else []
    cause = (result["failure"] or {}).get("cause")
    return rows + ([("reason", result["reason"])] if result["reason"] and result["reason"] != cause else [])


def _failure(failure: dict[str, Any] | None) -> list[tuple[str, str]]:
    if failure is None:
        return []
    line = f" (line {failure['line']})" if failure["line"] else ""
    rows = [
        ("cause", failure["cause"]),
        ("log says", failure["evidence"] + line if failure["evidence"] else ""),
        ("what to do", failure["remedy"]),
    ]
    return [(name, value) for name, value in rows if value]


def print_runs(runs: Iterable[dict[str, Any]]) -> None:
    """One line a run."""
    table = plain_table(left=("run", "state", "verdict"), right=("step time s", "tokens/s", "MFU %", "created"))
    for run in runs:
        metrics = run["metrics"] or {}
        mfu = metrics.get("mfu")
        table.add_row(
            run["run_id"],
            Text(run["state"], style=STYLES.get(run["state"], "")),
            Text(run["verdict"] or "", style=STYLES.get(run["verdict"] or "", "")),
            number(metrics.get("step_time_s")),
            number(metrics.get("tokens_per_s")),
            f"{100 * mfu:.2f}" if mfu is not None else "",
            (run["created"] or "").replace("T", " ").removesuffix("+00:00"),
        )
    print_table(table, optional=4)


def print_metrics(metrics: dict[str, Any]) -> None:
    """The figures, one a line, and the published ones beside them."""
    rows = _figures(metrics)
    if baseline := metrics["baseline"]:
        published = f"{number(baseline['step_time_s'], 's')}, release {baseline['release']}"
        rows.append(("published", f"{published}; measured is {number(baseline['step_time_ratio'])} x that"))
    for name, value in rows:
        typer.echo(f"{name:<18} {value}")


def print_plugins(plugins: Iterable[dict[str, Any]]) -> None:
    """One line a plugin, with its hooks or with what is wrong with it."""
    table = plain_table(left=("kind", "name", "distribution", "version"))
    table.add_column("hooks", overflow="fold")
    for plugin in plugins:
        told = Text(plugin["error"], style="red") if plugin["error"] else Text(", ".join(plugin["hooks"]))
        table.add_row(plugin["kind"], plugin["name"], plugin["distribution"], plugin["version"], told)
    print_table(table)


def print_checks(checks: Iterable[Check]) -> None:
    """One line a check, and below those that fail what to do."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("missing", style="red")
        table.add_row(mark, check.name, Text(check.detail))
        if check.remedy and not check.ok:
            table.add_row("", "", Text(check.remedy, style="yellow"))
    print_table(table)


def plain_table(left: Iterable[str] = (), right: Iterable[str] = ()) -> Table:
    """A table without a frame; names to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, no_wrap=True, justify="right")
    return table


def print_table(table: Table, optional: int = 0) -> None:
    """On a terminal, to its width, where the last ``optional`` columns give way so that the others stay whole.

    Piped output is for other programs: its lines are whole, without trailing blanks.
    """
    console = Console(highlight=False)
    if console.is_terminal:
        for _ in range(optional):
            if console.measure(table, options=console.options.update(width=PIPED_WIDTH)).maximum > console.width:
                table.columns.pop()
        console.print(table)
        return
    wide = Console(highlight=False, width=PIPED_WIDTH)
    with wide.capture() as captured:
        wide.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
