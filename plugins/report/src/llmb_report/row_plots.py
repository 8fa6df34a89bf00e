"""Plots with one row per set of repeats: the ratio with its interval, and the speed of each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from llmb import ReportedSet, counted
from llmb_report import text
from llmb_report.plot import Key, Plot, Table
from llmb_report.svg import BOTTOM, INK, LIMIT, MEASURED, PUBLISHED, RULE, as_svg, new_axes

MAX_ROWS = 24
"""Configurations that one plot shows. The table has all."""

ROW, TOP = 44, 4
"""Units of height of a row, and above the first row."""

LONGEST_NAME = 60
"""Characters of a name that fit in the width of a plot."""


def ratio_plot(sets: Sequence[ReportedSet], names: Sequence[str]) -> Plot | None:
    """Return the plot of the ratios with their intervals, or None if no set was compared."""
    known = [(name, each) for name, each in zip(names, sets, strict=True) if each.step_time_ratio is not None]
    if not known:
        return None
    shown = _highest(known)
    figure, axes = _rows([name for name, _ in shown])
    limits = sorted({1 + each.tolerance for _, each in shown if each.tolerance is not None})
    axes.axvline(1, color=PUBLISHED, linewidth=1.25)
    for limit in limits:
        axes.axvline(limit, color=LIMIT, linewidth=1.25, dashes=(4, 3))
    for row, (_, each) in enumerate(shown):
        ratio = each.step_time_ratio or 1.0
        low, high = each.interval or (ratio, ratio)
        axes.plot([low, high], [row, row], color=MEASURED, linewidth=2.5, solid_capstyle="butt")
        axes.plot([ratio], [row], color=MEASURED, marker="o", markersize=7)
    axes.set_xlabel("step time ratio, measured / published")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.06)
    title = "Step time ratio with its interval"
    worst = max(shown, key=lambda each: each[1].step_time_ratio or 0)
    description = (
        f"Measured over published step time of {counted(len(shown), 'set')} of repeats. "
        f"The highest ratio is {text.ratio(worst[1].step_time_ratio)} ({worst[0]})."
    )
    keys = [Key("dot", "ratio and interval"), Key("published", "1, the published step time")]
    keys += [Key("limit", f"limit {limit:g}") for limit in limits]
    rows = []
    for name, each in known:
        ratios = (each.step_time_ratio, *(each.interval or (None, None)))
        rows.append((name, *map(text.ratio, ratios), each.verdict or "none"))
    columns = ("configuration", "ratio", "from", "to", "verdict")
    table = Table(columns=columns, rows=rows, text=("configuration", "verdict"))
    svg = as_svg(figure, "ratio", title, description)
    return Plot(name="ratio", title=title, svg=svg, table=table, keys=keys, note=_note(shown, known))


@attrs.frozen(kw_only=True)
class Speed:
    """One metric of speed: its key in ``metrics`` and in ``baseline``, and the factor of its unit."""

    key: str
    published_key: str
    title: str
    axis: str
    unit: str
    factor: float = 1.0

    def measured(self, each: ReportedSet) -> list[float]:
        """Return the value of each run that has it. Partial metrics of incomplete runs do not count."""
        complete = (run.result for run in each.runs if run.result.get("window_complete") is not False)
        values = ((result.get("metrics") or {}).get(self.key) for result in complete)
        return [self.factor * value for value in values if value is not None]

    def published(self, each: ReportedSet) -> float | None:
        """Return the published value, or None."""
        for run in each.runs:
            baseline = (run.result.get("metrics") or {}).get("baseline") or {}
            if (value := baseline.get(self.published_key)) is not None:
                return float(self.factor * value)
        return None


SPEEDS = (
    Speed(
        key="tokens_per_s", published_key="tokens_per_s", title="Tokens per second", axis="tokens/s", unit="tokens/s"
    ),
    Speed(key="mfu", published_key="mfu", title="Model FLOPs utilisation", axis="MFU (%)", unit="%", factor=100),
    Speed(
        key="model_tflops_per_gpu",
        published_key="tflops_per_gpu",
        title="Model FLOP/s per GPU",
        axis="TFLOP/s per GPU",
        unit="TFLOP/s",
    ),
)


def speed_plot(speed: Speed, sets: Sequence[ReportedSet], names: Sequence[str]) -> Plot | None:
    """Return the plot of one metric of speed, or None if no run has it."""
    known = [
        (name, values, speed.published(each))
        for name, each in zip(names, sets, strict=True)
        if (values := speed.measured(each))
    ]
    if not known:
        return None
    shown = known[:MAX_ROWS]
    figure, axes = _rows([name for name, _, _ in shown])
    for row, (_, values, published) in enumerate(shown):
        if published is not None:
            axes.plot([published, published], [row - 0.2, row + 0.2], color=PUBLISHED, linewidth=2.5)
        axes.plot(values, [row] * len(values), color=MEASURED, marker="o", markersize=6, linestyle="none", alpha=0.75)
    measured = [value for _, values, _ in shown for value in values]
    all_published = [published for _, _, published in shown if published is not None]
    _scale_axis(axes, [*measured, *all_published])
    axes.set_xlabel(speed.axis)
    span = f"{text.number(min(measured))} to {text.number(max(measured))} {speed.unit}"
    description = f"{speed.title} of each run of {counted(len(shown), 'set')} of repeats: {span}."
    columns = ("configuration", "runs", "lowest", "highest", "published")
    rows = [
        (row_name, str(len(values)), *map(text.number, (min(values), max(values), published)))
        for row_name, values, published in known
    ]
    name = speed.key.replace("_", "-")
    return Plot(
        name=name,
        title=speed.title,
        svg=as_svg(figure, name, speed.title, description),
        table=Table(columns=columns, rows=rows, text=("configuration",)),
        keys=[Key("dot", "one run"), *([Key("tick", "published")] if all_published else [])],
        note=_note(shown, known),
    )


def _highest(known: Sequence[tuple[str, ReportedSet]]) -> list[tuple[str, ReportedSet]]:
    """Return the sets with the highest ratios, in their own order."""
    ranked = sorted(range(len(known)), key=lambda index: -(known[index][1].step_time_ratio or 0))
    return [known[index] for index in sorted(ranked[:MAX_ROWS])]


def _note(shown: Sequence[Any], known: Sequence[Any]) -> str:
    return "" if len(shown) == len(known) else f"{len(shown)} of {len(known)} sets of repeats; the table has all."


def _rows(names: Sequence[str]) -> tuple[Figure, Axes]:
    """Return axes with one row per name, the first one on top. Each name is above its row."""
    figure, axes = new_axes(BOTTOM + TOP + ROW * len(names), left=2, top=TOP)
    axes.set_ylim(len(names) - 0.7, -0.7)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    for row, name in enumerate(names):
        shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        axes.text(
            0,
            row - 0.22,
            shown,
            color=INK,
            transform=axes.get_yaxis_transform(),
            verticalalignment="bottom",
            clip_on=True,
        )
        axes.axhline(row, color=RULE, linewidth=0.75)
    return figure, axes


def _scale_axis(axes: Axes, values: Sequence[float]) -> None:
    """Choose a logarithmic axis if the values differ by more than ten times, and few tick labels."""
    axes.margins(x=0.06)
    if min(values) > 0 and max(values) / min(values) > 10:
        axes.set_xscale("log")
        decades = math.floor(math.log10(max(values))) - math.ceil(math.log10(min(values))) + 1
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 1 else (1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        if max(values) - min(values) < 1e-9 * max(map(abs, values)):
            axes.set_xlim(0.95 * min(values), 1.05 * max(values))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: _short(value)))


def _short(value: float) -> str:
    """Return the label of a tick: thousands as k, millions as M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 10 or (abs(value) >= size and math.isclose(value % (size / 10), 0, abs_tol=1e-6)):
            return f"{value / size:g}{letter}"
    return f"{value:g}"
