"""The plot of the step time over the steps of one configuration."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from llmb import ReportedRun, ReportedSet, counted
from llmb_report import text
from llmb_report.plot import Key, Plot, Table
from llmb_report.step_buckets import BUCKETS, MAX_STEPS, Bucket, MeasuredStep, put_into_buckets, step_times
from llmb_report.svg import BAND, INK, LIMIT, MEASURED, MUTED, PUBLISHED, as_svg, new_axes

LOWEST, HIGHEST = 0.9, 1.5
"""The range of the axis of step time, as multiples of the steady step times. Faster steps extend it."""

MAX_LINES = 12
"""Runs up to which each run is a line. More are a band."""

MAX_TABLE_ROWS = 50
MAX_EDGE_LABELS = 3
HEIGHT = 230
LABEL_SHARE = 0.3
"""The share of the width that a label at the upper edge may take."""


@attrs.frozen(kw_only=True)
class _Runs:
    """The runs of one configuration that have step times."""

    runs: Sequence[ReportedRun]
    steps: Sequence[Sequence[MeasuredStep]]

    @property
    def every(self) -> list[MeasuredStep]:
        """The steps of all runs."""
        return [each for steps in self.steps for each in steps]

    @property
    def steady_times_s(self) -> list[float]:
        """The steady step time of each run that has one."""
        return [value for run in self.runs if (value := _table(run, "steady_state").get("step_time_s"))]

    @property
    def usual_s(self) -> float:
        """The steady step time, or the median if no run has a steady state."""
        return statistics.median(self.steady_times_s or [each.time_s for each in self.every])

    @property
    def window(self) -> tuple[int, int] | None:
        """The first and the last step of the measuring window that most runs have completely."""
        complete = [run for run in self.runs if run.result.get("window_complete") is not False]
        windows = [(each["first"], each["last"]) for run in complete if (each := _table(run, "window"))]
        return Counter(windows).most_common(1)[0][0] if windows else None

    @property
    def steady(self) -> tuple[int, int] | None:
        """The median of the first and of the last steady steps."""
        states = [state for run in self.runs if (state := _table(run, "steady_state"))]
        if not states:
            return None
        first, last = (statistics.median_low(state[name] for state in states) for name in ("first", "last"))
        return first, last


def step_plot(name: str, title: str, sets: Sequence[ReportedSet]) -> Plot | None:
    """Return the plot of the steps of all runs of one configuration, or None if no step was measured."""
    pairs = [(run, steps) for each in sets for run in each.runs if (steps := step_times(run))]
    if not pairs:
        return None
    found = _Runs(runs=[run for run, _ in pairs], steps=[steps for _, steps in pairs])
    published_s = next((each.published_step_time_s for each in sets if each.published_step_time_s), None)
    tolerance = next((each.tolerance for each in sets if each.tolerance is not None), None)
    limit_s = published_s * (1 + tolerance) if published_s and tolerance is not None else None
    figure, axes = new_axes(HEIGHT, top=24)
    low = min(LOWEST * found.usual_s, 0.98 * min(each.time_s for each in found.every))
    high = HIGHEST * max(found.steady_times_s, default=found.usual_s)
    axes.set_ylim(low, high)
    axes.set_xlim(*_x_limits(found.every))
    _draw_marks(axes, found, published_s, limit_s)
    _draw_steps(axes, found)
    above = _draw_edge(axes, found, high)
    axes.set_xlabel("step")
    axes.set_ylabel("step time (s)")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(axis="y")
    description = _describe(found, published_s, above)
    return Plot(
        name=name,
        title=title,
        svg=as_svg(figure, name, f"Step time of {title}", description),
        table=_steps_table(found),
        keys=[*_keys(found, published_s, limit_s, (low, high))],
        note=f"{counted(above, 'step')} above the plot." if above > MAX_EDGE_LABELS else "",
    )


def _table(run: ReportedRun, name: str) -> dict[str, Any]:
    return run.result.get(name) or {}


def _x_limits(steps: Sequence[MeasuredStep]) -> tuple[float, float]:
    first, last = min(each.step for each in steps), max(each.step for each in steps)
    edge = max(0.5, 0.02 * (last - first))
    return first - edge, last + edge


def _draw_marks(axes: Axes, found: _Runs, published_s: float | None, limit_s: float | None) -> None:
    """Draw the window, the steady state, the published step time and the limit."""
    if found.window:
        first, last = found.window
        half = max(0.5, 0.004 * (axes.get_xlim()[1] - axes.get_xlim()[0]))
        axes.axvspan(first - half, last + half, color=BAND, linewidth=0)
    if found.steady:
        axes.plot(found.steady, [found.usual_s, found.usual_s], color=MUTED, linewidth=1.25)
    if published_s:
        axes.axhline(published_s, color=PUBLISHED, linewidth=1.25)
    if limit_s:
        axes.axhline(limit_s, color=LIMIT, linewidth=1.25, dashes=(4, 3))


def _draw_steps(axes: Axes, found: _Runs) -> None:
    """Draw each run as a line, or many runs as a band with their median."""
    if len(found.runs) > MAX_LINES:
        _draw_band(axes, put_into_buckets(found.every, _most(found.every), low=0.05, high=0.95))
        return
    for steps in found.steps:
        if buckets := _condense(steps):
            _draw_band(axes, buckets)
        else:
            few = len(steps) <= 2
            axes.plot(
                [each.step for each in steps],
                [each.time_s for each in steps],
                color=MEASURED,
                marker="o" if few else None,
                markersize=4,
                alpha=1 if len(found.runs) == 1 else 0.7,
            )


def _draw_band(axes: Axes, buckets: Sequence[Bucket]) -> None:
    middles = [each.middle for each in buckets]
    low, high = [each.low_s for each in buckets], [each.high_s for each in buckets]
    axes.fill_between(middles, low, high, color=MEASURED, alpha=0.25, linewidth=0)
    axes.plot(middles, [each.median_s for each in buckets], color=MEASURED)


def _most(steps: Sequence[MeasuredStep]) -> int:
    """Return the number of buckets for these steps: one for each step number if there are few."""
    numbers = max(each.step for each in steps) - min(each.step for each in steps) + 1
    return numbers if numbers <= MAX_STEPS else BUCKETS


def _condense(steps: Sequence[MeasuredStep]) -> Sequence[Bucket]:
    """Return the buckets of a run with too many steps for a point each, or none."""
    buckets = put_into_buckets(steps, _most(steps))
    return buckets if len(buckets) < len(steps) else ()


def _draw_edge(axes: Axes, found: _Runs, high: float) -> int:
    """Mark the steps above the plot at its upper edge, and label the slowest ones. Return their number."""
    slowest: dict[int, float] = {}
    for each in found.every:
        if each.time_s > high:
            slowest[each.step] = max(each.time_s, slowest.get(each.step, 0.0))
    if not slowest:
        return 0
    axes.plot(
        [*slowest], [high] * len(slowest), marker="^", markersize=5, color=MEASURED, linestyle="none", clip_on=False
    )
    left, right = axes.get_xlim()
    taken: list[float] = []
    for step, time_s in sorted(slowest.items(), key=lambda each: -each[1]):
        place = (step - left) / (right - left)
        start = min(place, 1 - LABEL_SHARE)
        if len(taken) < MAX_EDGE_LABELS and all(abs(start - other) >= LABEL_SHARE for other in taken):
            taken.append(start)
            axes.annotate(
                f"step {step}: {text.seconds(time_s)}",
                (step, high),
                xytext=(0, 6),
                textcoords="offset points",
                horizontalalignment="left" if place <= 1 - LABEL_SHARE else "right",
                verticalalignment="bottom",
                color=INK,
                annotation_clip=False,
            )
    return len(slowest)


def _describe(found: _Runs, published_s: float | None, above: int) -> str:
    steps = len({each.step for each in found.every})
    parts = [f"Step time of {counted(len(found.runs), 'run')} over {counted(steps, 'step')}"]
    parts.append(f"usually {text.seconds(found.usual_s)}")
    parts += [f"published {text.seconds(published_s)}"] if published_s else []
    parts += [f"{counted(above, 'step')} above the plot"] if above else []
    return ", ".join(parts) + "."


def _keys(found: _Runs, published_s: float | None, limit_s: float | None, limits: tuple[float, float]) -> Iterator[Key]:
    if len(found.runs) > MAX_LINES:
        yield Key("line", f"median of {len(found.runs)} runs, 5 to 95 % as a band")
    elif any(map(_condense, found.steps)):
        yield Key("line", "median of neighbouring steps, lowest to highest as a band")
    else:
        yield Key("line", "one run" if len(found.runs) == 1 else f"{len(found.runs)} runs")
    if found.window:
        first, last = found.window
        yield Key("window", f"window, step {last}" if first == last else f"window, steps {first} to {last}")
    if found.steady:
        yield Key("steady", f"steady, {text.seconds(found.usual_s)}")
    for mark, value in (("published", published_s), ("limit", limit_s)):
        if value:
            place = "" if limits[0] <= value <= limits[1] else ", outside the plot"
            yield Key(mark, f"{mark} {text.seconds(value)}{place}")


def _steps_table(found: _Runs) -> Table:
    """Return the steps, or ranges of them, with the median and the range of their times."""
    buckets = put_into_buckets(found.every, MAX_TABLE_ROWS)
    if all(each.low_s == each.high_s for each in buckets):
        rows = [(_steps(each), text.number(each.median_s)) for each in buckets]
        return Table(columns=("step", "step time (s)"), rows=rows)
    rows_of_ranges = [(_steps(each), *map(text.number, (each.median_s, each.low_s, each.high_s))) for each in buckets]
    return Table(columns=("steps", "median (s)", "lowest (s)", "highest (s)"), rows=rows_of_ranges)


def _steps(bucket: Bucket) -> str:
    return str(bucket.first) if bucket.first == bucket.last else f"{bucket.first} to {bucket.last}"
