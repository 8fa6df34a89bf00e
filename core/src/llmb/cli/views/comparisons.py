"""A comparison of runs as text: a table of points, then what differs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

import llmb
from llmb.cli import output
from llmb.cli.views.metrics import HIGH_MFU
from llmb.cli.views.numbers import four_digits
from llmb.cli.views.tables import Column, print_table

NAMED_RUNS = 4
"""The most runs that a line names. --json has all."""

CALLS = {"slower": Text("slower", "red"), "faster": Text("faster", "green"), "none": Text("~")}


def print_comparison(found: llmb.RunComparison) -> None:
    """Print the points that both sides have, the differences, and the runs that could not be compared."""
    if found.points:
        _print_points(found)
        _print_footnotes(found)
    for name, reason, runs in found.not_compared:
        place = "" if name in reason or found.b == "baseline" else f" in {name}"
        output.print_prose(f"not compared{place}, {reason}: {llmb.first_names(runs, NAMED_RUNS)}")
    if not found.points:
        other = "a step time to compare with a published one" if found.b == "baseline" else "a point in common"
        apart = [f"{name} is {_value(before)} in A, {_value(after)} in B" for name, before, after in found.apart]
        reason = f": {'; '.join(apart)}" if apart else ""
        output.print_message(f"nothing to compare: no run has {other}{reason}")
    if found.differences:
        output.print_text("")
        _print_differences(found.differences, len(found.points))


def _value(value: object) -> str:
    return "not set" if value is None else str(value)


def _print_points(found: llmb.RunComparison) -> None:
    title = "baseline" if found.b == "baseline" else _count("B", [point.b for point in found.points], found.b)
    columns = [Column("step time (s)"), Column(_count("A", [point.a for point in found.points], found.a), right=True)]
    columns += [Column(title, right=True), Column("change"), Column()]
    rows: list[tuple[str | Text, ...]] = []
    heading, width = "", max(len(_gpus(point)) for point in found.points)
    for point, sizes in zip(found.points, found.sizes_apart(), strict=True):
        if heading != _heading(point):
            heading = _heading(point)
            rows.append((heading, "", "", "", ""))
        rows.append(_row(point, width, sizes))
    if found.geometric_mean_change is not None and len(found.points) > 1:
        rows.append(("geometric mean", "", "", _percent(found.geometric_mean_change), ""))
    print_table(columns, rows)


def _count(name: str, sides: Sequence[llmb.ComparedSide], runs: Sequence[str]) -> str:
    """Return the number of runs of a side that count, and of all its runs if some do not."""
    counted = sum(len(side.runs) - len(side.left_out) for side in sides)
    total = llmb.counted(len(runs), "run")
    return f"{name}: {total}" if counted == len(runs) else f"{name}: {counted} of {total}"


def _heading(point: llmb.PointChange) -> str:
    recipe = (point.recipe or "").partition("/")[2]
    return " ".join(filter(None, (recipe, point.gpu_type, point.dtype, point.variant)))


def _row(point: llmb.PointChange, width: int, sizes: str) -> tuple[str | Text, ...]:
    decimals = _decimals(point)
    change = f"{_percent(point.change, decimals)} +- {100 * point.margin:.{decimals}f} %"
    call = CALLS[point.call]
    if point.test:
        call = call + Text(f"  (U test: p = {point.test.p:.2g})")
    times = (four_digits(side.step_time_s) for side in (point.a, point.b))
    return (f"  {_gpus(point).rjust(width)}{sizes}", *times, change, call)


def _gpus(point: llmb.PointChange) -> str:
    return llmb.counted(point.gpus or 0, "CPU" if point.gpu_type == "cpu" else "GPU")


def _decimals(point: llmb.PointChange) -> int:
    """Return one decimal place, or up to three if only they show whether a change exceeds its margin."""
    for decimals in (1, 2):
        if f"{100 * abs(point.change):.{decimals}f}" != f"{100 * point.margin:.{decimals}f}":
            return decimals
    return 3


def _percent(change: float, decimals: int = 1) -> str:
    return f"{round(100 * change, decimals) + 0.0:+.{decimals}f} %"


def _print_footnotes(found: llmb.RunComparison) -> None:
    unclear = [point for point in found.points if point.call == "none"]
    if any(abs(point.change) > point.margin for point in unclear):
        output.print_prose("~ the window is off the steady state, which does not confirm the change")
    if any(abs(point.change) <= point.margin for point in unclear):
        few = found.b != "baseline" and any(point.test is None for point in found.points)
        advice = "; with 4 runs per side, a Mann-Whitney U test is added" if few else ""
        output.print_prose(f"~ within noise{advice}")
    _print_notes(found)
    left_out = [run for point in found.points for side in (point.a, point.b) for run in side.left_out]
    if left_out:
        named = llmb.first_names(left_out, NAMED_RUNS)
        output.print_prose(f"left out, because the window is off the steady state: {named}")


def _print_notes(found: llmb.RunComparison) -> None:
    """Print what readers of the changes must know about the runs."""
    if twice := [run for run in found.a if run in found.b]:
        output.print_prose(f"note: on both sides, so the change is too small: {llmb.first_names(twice, NAMED_RUNS)}")
    for in_a, in_b in found.same_logs:
        output.print_prose(f"note: {in_a} in A and {in_b} in B have the same log, so the change is too small")
    for reason, runs in found.not_judged:
        output.print_prose(f"note: {llmb.first_names(runs, NAMED_RUNS)}: {reason}")
    for point in found.points:
        for name, mfu in (("A", point.a.mfu), ("B", point.b.mfu)):
            if mfu is not None and mfu > 1:
                place = f"{name}, {_heading(point)} {_gpus(point)}"
                output.print_prose(f"note: {HIGH_MFU}: {100 * mfu:,.1f} % in {place}")


def _print_differences(differences: Sequence[llmb.Difference], points: int) -> None:
    columns = [Column("differences"), Column("A", wraps=12), Column("B", wraps=12), Column("at")]
    rows = [
        (f"  {_describe_key(each.key)}", each.a, each.b, f"{each.points} of {llmb.counted(points, 'point')}")
        for each in differences
    ]
    print_table(columns, rows)


def _describe_key(key: str) -> str:
    """Return a key as users read it, such as ``image`` or ``env NCCL_IB_SL``."""
    return key.replace("env.", "env ", 1) if key.startswith("env.") else key.removeprefix("workload.")
