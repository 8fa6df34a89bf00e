"""The report in a real browser: on narrow and wide screens, light, dark, and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.browser import system_browser
from parts.deadline import DEADLINE_S
from parts.recorded_runs import record_runs

from .conftest import step_times, write_page

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("report")]

TEXTS = """() => [...document.querySelectorAll('svg')].map(svg => [...svg.querySelectorAll('text')].map(text => {
    const box = text.getBoundingClientRect();
    return [text.textContent, box.left, box.top, box.right, box.bottom];
}))"""
"""The boxes of the texts in each plot."""

WIDER = """() => [...document.querySelectorAll('body *')]
    .filter(each => !each.closest('.scroll, .unseen, thead, svg'))
    .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
    .map(each => each.outerHTML.slice(0, 100))"""
"""Elements that a reader would have to scroll sideways to see."""

CONTRASTS = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const light = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(each => each / 255);
        const [r, g, b] = parts.map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = light(getComputedStyle(document.body).backgroundColor);
    const texts = [...document.querySelectorAll('h1, h2, h3, p, dt, dd, li, td, th, b, summary, span, code, text')];
    const seen = texts.map(each => [each.tagName, getComputedStyle(each)[each.tagName == 'text' ? 'fill' : 'color']]);
    return seen.map(([name, colour]) => {
        const [low, high] = [paper, light(colour)].sort((a, b) => a - b);
        return [name, colour, (high + 0.05) / (low + 0.05)];
    });
}"""
"""The contrast of each text with the page."""


COLUMNS = """() => new Set(
    [...document.querySelectorAll('#step-time ~ .plots figure')].map(each => each.getBoundingClientRect().left)
).size"""
"""The number of plots side by side."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return the browser of the system."""
    with system_browser() as started:
        yield started


@pytest.fixture
def file(tmp_path: Path, page: str) -> Path:
    """Write the report on all kinds of runs."""
    file = tmp_path / "report.html"
    file.write_text(page)
    return file


def overlapping(boxes: list[tuple[str, float, float, float, float]]) -> list[tuple[str, str]]:
    """Return the texts whose boxes overlap by more than a pixel."""
    return [
        (one[0], two[0])
        for index, one in enumerate(boxes)
        for two in boxes[index + 1 :]
        if min(one[3], two[3]) - max(one[1], two[1]) > 1 and min(one[4], two[4]) - max(one[2], two[2]) > 1
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_shows_everything_with_enough_contrast(browser: Any, file: Path, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.set_default_timeout(DEADLINE_S * 1000)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    for width in (400, 1000, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => innerWidth === width", arg=width)
        check_layout(page, width)
    smallest = min(page.evaluate(CONTRASTS), key=lambda each: each[2])
    assert smallest[2] >= 4.5, smallest
    assert (messages, requests) == ([], [file.as_uri()])
    page.close()


def test_names_of_any_length_fit_on_the_screen(browser: Any, tmp_path: Path) -> None:
    variable = {"sweep": {"env.A_VARIABLE": "x" * 80}}
    file = tmp_path / "report.html"
    text = write_page(*record_runs([step_times(1.0)], provenance=variable))
    file.write_text(text.replace("<span>llama2-70b</span>", f"<span>{'llama2' * 12}</span>"))
    page = browser.new_page()
    page.set_default_timeout(DEADLINE_S * 1000)
    page.goto(file.as_uri())
    for width in (400, 800, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert page.evaluate(WIDER) == [], width
    page.close()


def check_layout(page: Any, width: int) -> None:
    """Check that a page of this width can be read without scrolling sideways."""
    assert page.evaluate(WIDER) == [], width
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert [pair for boxes in page.evaluate(TEXTS) for pair in overlapping(boxes)] == [], width
    columns = page.evaluate(COLUMNS)
    assert columns == (1 if width < 1000 else 2), width
    size = page.evaluate("() => document.querySelector('svg text').getBoundingClientRect().height")
    assert size >= 10, width  # readable also on the narrowest screen


def test_a_printed_report_is_complete_and_light(browser: Any, file: Path) -> None:
    page = browser.new_page(viewport={"width": 794, "height": 1123}, color_scheme="dark")
    page.set_default_timeout(DEADLINE_S * 1000)
    page.goto(file.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") in ("rgb(255, 255, 255)",)
    assert page.evaluate("() => document.querySelector('.settings').getBoundingClientRect().height") > 0
    assert page.evaluate(WIDER) == []
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
