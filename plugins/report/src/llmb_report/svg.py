"""Plots as SVG elements of an HTML page: colours of the page's style sheet, text as text, and no foreign ids."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

WIDTH = 420
"""Units of the view box. With 12-unit text, a plot is readable on a screen of 400 pixels."""

BOTTOM, RIGHT = 38, 10
"""Margins: the tick labels and the title of the axis below, and half of the last tick label on the right."""

VARIABLES = {
    "#010101": "ink",
    "#020202": "muted",
    "#030303": "rule",
    "#040404": "measured",
    "#050505": "published",
    "#060606": "limit",
    "#070707": "band",
}
"""Stand-in colours, and the variables of the page's style sheet that replace them."""

INK, MUTED, RULE, MEASURED, PUBLISHED, LIMIT, BAND = VARIABLES

PLAIN_GROUP = re.compile(r"<g>((?:(?!</?g[ >]).)*)</g>", re.DOTALL)
INVISIBLE = re.compile(r'<path d="[^"]*" style="fill: none"/>')
NUMBER = re.compile(r"\d+\.\d\d+")
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "llmb",
    "font.size": 12,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": RULE,
    "grid.linewidth": 0.75,
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "figure.facecolor": "none",  # voice: matplotlib names it so
    "axes.facecolor": "none",
    "lines.linewidth": 1.25,
    "path.simplify": True,
}


@contextmanager
def plotting() -> Iterator[None]:
    """Use the settings of this package in the block, whatever matplotlibrc of the user contains."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def new_axes(height: float, *, left: float = 64, top: float = 8) -> tuple[Figure, Axes]:
    """Return a plot of the usual width. Units are those of the view box.

    The margins are the same in all plots, so that their axes are aligned. A layout engine would draw each plot twice.
    """
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    FigureCanvasSVG(figure)
    box = (left / WIDTH, BOTTOM / height, (WIDTH - left - RIGHT) / WIDTH, (height - top - BOTTOM) / height)
    axes = figure.add_axes(box)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    axes.yaxis.set_label_coords((14 - left) / (WIDTH - left - RIGHT), 0.5)
    return figure, axes


def as_svg(figure: Figure, name: str, title: str, description: str) -> Markup:
    """Return a plot as an element of a page. ``name`` makes the ids of the element unique in the page."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # the browser has its own fonts
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = buffer.getvalue()
    _, _, text = text.partition("<svg")
    attributes, _, body = text.partition(">")
    view_box = re.search(r'viewBox="[^"]*"', attributes)
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    opening = (
        f'<svg {view_box[0] if view_box else ""} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    )
    return Markup(opening + _condense(body, name))  # noqa: S704  # matplotlib escapes text, and the others are escaped


def _condense(body: str, name: str) -> str:
    """Return the body with short numbers, with ids only where they are used, and with the colours of the page."""
    used = set(re.findall(r'(?:href="#|url\(#)([\w-]+)', body))
    body = re.sub(r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r'(href="#|url\(#)(?=[\w-])', rf"\g<1>{name}-", body)
    body = re.sub(r'<text style="([^"]*)"', lambda found: f'<text style="{_text_style(found[1])}"', body)
    body = re.sub(r"<[^>]*>", lambda tag: NUMBER.sub(_shorten, tag[0]), body)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r"\s*\n\s*(?=[LQCz\"])", "", body)  # within a path
    body = re.sub(r"<g/>|<defs/>|<defs>\s*<style.*?</defs>", "", body, flags=re.DOTALL)
    count = 1
    while count:  # groups without attributes, from the inside
        body, count = PLAIN_GROUP.subn(r"\1", body)
    return re.sub(r"\s*\n\s*", "\n", INVISIBLE.sub("", body))


def _shorten(found: re.Match[str]) -> str:
    """Return a coordinate with one decimal, which is a tenth of a unit of the view box."""
    return f"{float(found[0]):.1f}".removesuffix(".0")


def _text_style(style: str) -> str:
    """Return the style of a text without its font family: the page sets it."""
    size = re.search(r"(\d+(?:\.\d+)?)px", style)
    kept = [
        part.strip() for part in style.split(";") if not part.strip().startswith(("font:", "font-family", "font-size"))
    ]
    return "; ".join([f"font-size: {size[1] if size else 12}px", *filter(None, kept)])
