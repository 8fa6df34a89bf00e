"""The axis of measured values: linear or logarithmic, with few tick labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator


def scale_axis(axes: Axes, values: Sequence[float]) -> None:
    """Choose a logarithmic axis if the values differ by more than ten times, and few tick labels."""
    axes.margins(x=0.06)
    shorten: Callable[[float, object], str] = lambda value, _place: _short(value)  # noqa: E731  # matplotlib calls it
    if min(values) > 0 and max(values) / min(values) > 10:
        axes.set_xscale("log")
        decades = math.floor(math.log10(max(values))) - math.ceil(math.log10(min(values))) + 1
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 1 else (1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        if max(values) - min(values) < 1e-9 * max(map(abs, values)):
            axes.set_xlim(0.95 * min(values), 1.05 * max(values))
    axes.xaxis.set_major_formatter(FuncFormatter(shorten))


def _short(value: float) -> str:
    """Return the label of a tick: thousands as k, millions as M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 10 or (abs(value) >= size and math.isclose(value % (size / 10), 0, abs_tol=1e-6)):
            return f"{value / size:g}{letter}"
    return f"{value:g}"
