"""Scaling: step time and efficiency over the number of GPUs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from llmb import ReportedSet
from llmb_report import text
from llmb_report.plot import Key, Plot, Table
from llmb_report.svg import MEASURED, PUBLISHED, as_svg, new_axes

HEIGHT = 220
EFFICIENCY = "Tokens/s of one GPU, relative to the smallest size."


@attrs.frozen(kw_only=True)
class Size:
    """The mean speed of ``sets`` sets of one configuration at one number of GPUs. Unknown values are None."""

    gpus: int
    sets: int
    step_time_s: float | None
    tokens_per_s_per_gpu: float | None
    published_step_time_s: float | None
    published_tokens_per_s_per_gpu: float | None


@attrs.frozen(kw_only=True)
class Scaling:
    """A configuration at two or more sizes, the smallest first."""

    title: str
    sizes: Sequence[Size]


def find_scalings(sets: Sequence[ReportedSet]) -> list[Scaling]:
    """Return the configurations that were measured at two or more sizes, each with the same model at all of them."""
    families, models = text.families(sets), [_model(each) for each in sets]
    shared: dict[str, set[tuple[str, str]]] = {}
    for family, model in zip(families, models, strict=True):
        shared.setdefault(family, set(model.items())).intersection_update(model.items())
    groups: dict[tuple[str, ...], dict[int, list[ReportedSet]]] = {}
    for family, model, each in zip(families, models, sets, strict=True):
        if each.gpus is not None and each.step_time_s is not None and not _is_impossible(each):
            own = {key: value for key, value in model.items() if (key, value) not in shared[family]}
            changes = (f"{key}={value}" for key, value in {**each.changes, **own}.items())
            key = (family, *filter(None, (each.variant, *changes)))
            groups.setdefault(key, {}).setdefault(each.gpus, []).append(each)
    return [
        Scaling(
            title=", ".join(filter(None, key)), sizes=[_size(gpus, members) for gpus, members in sorted(sizes.items())]
        )
        for key, sizes in groups.items()
        if len(sizes) > 1
    ]


def _is_impossible(each: ReportedSet) -> bool:
    """Check whether the MFU of a run that counts is above 100 %. The peak of a CPU is measured, and may be too low."""
    metrics = [run.result.get("metrics") or {} for run in each.runs if run.run_id not in each.left_out]
    return each.gpu_type != "cpu" and any((found.get("mfu_computed") or 0) > 1 for found in metrics)


def _model(each: ReportedSet) -> dict[str, str]:
    """Return the sizes of the model, in which a proxy differs from the complete model."""
    return {key: value for key, value in each.runs[0].settings.items() if key.startswith("model.")}


def _size(gpus: int, sets: Sequence[ReportedSet]) -> Size:
    """Return the speed at one number of GPUs."""
    measured_s = [each.step_time_s for each in sets]
    published_s = [each.published_step_time_s for each in sets]
    return Size(
        gpus=gpus,
        sets=len(sets),
        step_time_s=_mean(measured_s),
        tokens_per_s_per_gpu=_tokens_per_s_per_gpu(sets, measured_s),
        published_step_time_s=_mean(published_s),
        published_tokens_per_s_per_gpu=_tokens_per_s_per_gpu(sets, published_s),
    )


def _metrics(each: ReportedSet) -> list[dict[str, Any]]:
    """Return the metrics of the runs that count. Partial metrics of incomplete runs do not count."""
    kept = [run.result for run in each.runs if run.run_id not in each.left_out]
    complete = [result for result in kept if result.get("window_complete") is not False]
    return [found for result in complete if (found := result.get("metrics"))]


def _tokens_per_s_per_gpu(sets: Sequence[ReportedSet], step_times_s: Sequence[float | None]) -> float | None:
    """Return the tokens of one step of each set, summed, divided by the sum of the step times, one for each set.

    If all sizes have the same tokens per GPU, the efficiency is the ratio of the step times in the other plot.
    """
    pairs = [
        (first["tokens_per_s_per_gpu"] * first["step_time_s"], time_s)
        for each, time_s in zip(sets, step_times_s, strict=True)
        if time_s and (first := next(iter(_metrics(each)), None)) and first.get("tokens_per_s_per_gpu")
    ]
    return sum(tokens for tokens, _ in pairs) / sum(time_s for _, time_s in pairs) if pairs else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def scaling_plots(number: int, scaling: Scaling) -> Iterator[Plot]:
    """Yield the plots of the step time and of the efficiency."""
    first = scaling.sizes[0]

    def step_time(size: Size) -> tuple[float | None, float | None]:
        return size.step_time_s, size.published_step_time_s

    def efficiency(size: Size) -> tuple[float | None, float | None]:
        return (
            _percent_of(size.tokens_per_s_per_gpu, first.tokens_per_s_per_gpu),
            _percent_of(size.published_tokens_per_s_per_gpu, first.published_tokens_per_s_per_gpu),
        )

    yield _plot(f"scaling-time-{number}", "Step time", "step time (s)", scaling, step_time)
    plot = _plot(f"scaling-efficiency-{number}", "Efficiency", "efficiency (%)", scaling, efficiency)
    yield attrs.evolve(plot, note=f"{EFFICIENCY} {plot.note}".strip())


def _note(scaling: Scaling) -> str:
    """Return the sizes that are means of several sets, whose settings may differ."""
    means = [f"{size.sets} at {size.gpus} GPUs" for size in scaling.sizes if size.sets > 1]
    return f"Mean of several sets of repeats, whose settings may differ: {', '.join(means)}." if means else ""


def _percent_of(value: float | None, smallest: float | None) -> float | None:
    return None if value is None or not smallest else 100 * value / smallest


def _plot(
    name: str, title: str, axis: str, scaling: Scaling, values_of: Callable[[Size], tuple[float | None, float | None]]
) -> Plot:
    """Return a plot of measured and published values over the number of GPUs."""
    title = ", ".join(filter(None, (title, scaling.title)))
    figure, axes = new_axes(HEIGHT)
    gpus = [size.gpus for size in scaling.sizes]
    measured, published = zip(*map(values_of, scaling.sizes), strict=True)
    drawn = [pair for pair in zip(gpus, published, strict=True) if pair[1] is not None]
    if drawn:
        axes.plot(*zip(*drawn, strict=True), color=PUBLISHED, marker="D", markersize=4, dashes=(4, 3))
    known = [pair for pair in zip(gpus, measured, strict=True) if pair[1] is not None]
    if known:
        axes.plot(*zip(*known, strict=True), color=MEASURED, marker="o", markersize=6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(gpus))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    every = [value for value in (*measured, *published) if value is not None]
    middle = (min(every) + max(every)) / 2 if every else 1.0
    reach = max(0.1 * middle, 0.65 * (max(every) - min(every))) if every else 1.0
    axes.set_ylim(middle - reach, middle + reach)
    axes.margins(x=0.08)
    axes.set_xlabel("GPUs")
    axes.set_ylabel(axis)
    axes.grid(axis="y")
    parts = [f"{size} GPUs {text.number(value)}" for size, value in zip(gpus, measured, strict=True)]
    description = f"{axis.capitalize()} over the number of GPUs: {', '.join(parts)}."
    rows = [
        (str(size), text.number(value), text.number(other))
        for size, value, other in zip(gpus, measured, published, strict=True)
    ]
    return Plot(
        name=name,
        title=title,
        svg=as_svg(figure, name, title, description),
        table=Table(columns=("GPUs", f"measured {axis}", f"published {axis}"), rows=rows),
        keys=[Key("dot", "measured"), *([Key("published-dashed", "published")] if drawn else [])],
        note=_note(scaling),
    )
