"""The documentation site, built strictly and shown in a real browser: narrow and wide, light and dark."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlparse

import pytest
from parts.browser import system_browser
from parts.deadline import DEADLINE_S
from parts.repository import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.xdist_group("browser")]

BUILD = (
    "run",
    "--quiet",
    "--isolated",
    "--only-group",
    "docs",
    "--project",
    str(ROOT),
    "zensical",
    "build",
    "--strict",
)
SOURCES = ("docs", "core/src")
WIDTHS = (400, 1000, 1600)
HEIGHT = 200
"""Chromium draws no more than this of a page, and drawing takes most of the time."""

WIDER = """() => document.documentElement.scrollWidth > innerWidth ? [...document.querySelectorAll('.md-content *')]
    .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
    .filter(each => !each.closest('pre, .md-typeset__scrollwrap, .md-typeset__table'))
    .map(each => each.outerHTML.slice(0, 100)) : []"""
"""Elements because of which the page scrolls sideways."""

TITLES_AND_BLOCKS = """() => [
    document.querySelectorAll('h1').length, document.querySelector('.md-content').textContent.includes('```')]"""
"""The number of titles, and whether the page shows the fence of a block."""

HAS_SCHEME = """scheme => /^rgba?.(255, 255, 255|0, 0, 0, 0)/.test(getComputedStyle(document.body).backgroundColor)
    === (scheme === 'light')"""
"""True once the paper is white, or dark if the user prefers that."""

CONTRASTS = """() => {
    const light = parts => {
        const [r, g, b] = parts.slice(0, 3).map(each => each / 255)
            .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const known = new Map();
    const shown = colours => {
        const key = colours.join();
        if (known.has(key)) return known.get(key);
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        known.set(key, light([...canvas.getImageData(0, 0, 1, 1).data]));
        return known.get(key);
    };
    return [...document.querySelectorAll('.md-content :is(h1, h2, h3, p, li, td, th, code, a:not(.headerlink))')]
        .filter(each => each.textContent.trim() && each.checkVisibility()).map(each => {
            const below = [];
            for (let at = each; at; at = at.parentElement) below.unshift(getComputedStyle(at).backgroundColor);
            const paper = ['white', ...below];
            const [low, high] = [shown(paper), shown([...paper, getComputedStyle(each).color])].sort((a, b) => a - b);
            return [(high + 0.05) / (low + 0.05), each.outerHTML.slice(0, 80)];
        }).filter(([contrast]) => contrast < 4.5);
}"""
"""Texts with a contrast below that of WCAG AA."""


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag in ("a", "img", "link", "script") and (address := values.get("href") or values.get("src")):
            self.addresses.append(address)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A handler that logs no request."""

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site strictly from a copy of its sources."""
    folder = tmp_path_factory.mktemp("site")
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = subprocess.run([sys.executable, "-m", "uv", *BUILD], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Links]:
    """Return the links of each page, by its address in the site."""
    files = sorted(site.rglob("*.html"))
    return {f"/{path.relative_to(site)}".removesuffix("index.html"): Links(path.read_text()) for path in files}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on this machine."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return the browser of the system."""
    with system_browser() as started:
        yield started


def test_every_link_inside_the_site_leads_somewhere(pages: dict[str, Links], site: Path) -> None:
    broken = []
    for page, links in pages.items():
        for link in links.addresses:
            target = urlparse(urljoin(f"http://site{page}", link))
            path = unquote(target.path)
            found = (site / path.lstrip("/")).is_file() or path in pages
            anchor_missing = target.fragment and path in pages and target.fragment not in pages[path].anchors
            if target.netloc == "site" and page != "/404.html" and (not found or anchor_missing):
                broken.append(f"{page}: {link}")
    assert broken == []


def test_every_page_is_readable_at_any_width_in_light_and_dark_and_loads_nothing_from_another_host(
    pages: dict[str, Links], browser: Any, address: str
) -> None:
    errors: list[str] = []
    requested: list[str] = []
    view = browser.new_page()
    view.set_default_timeout(DEADLINE_S * 1000)
    view.on("pageerror", lambda error: errors.append(str(error)))
    view.on("request", lambda request: requested.append(request.url))
    for page in pages:
        assert view.goto(address + page, wait_until="load").status == 200, page
        assert view.evaluate(TITLES_AND_BLOCKS) == [1, False], f"{page}: no title, or a block is shown as text"
        for width in WIDTHS:
            view.set_viewport_size({"width": width, "height": HEIGHT})
            view.wait_for_function("width => innerWidth === width", arg=width, polling=5)
            assert view.evaluate(WIDER) == [], (page, width)
        for scheme in ("dark", "light"):
            view.emulate_media(color_scheme=scheme)
            view.wait_for_function(HAS_SCHEME, arg=scheme, polling=5)
            assert view.evaluate(CONTRASTS) == [], (page, scheme)
    view.close()
    assert errors == []
    assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []
