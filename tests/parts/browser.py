"""The browser of the system."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from parts.deadline import DEADLINE_S

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]  # a GPU that software imitates is slow


@contextmanager
def system_browser() -> Iterator[Any]:
    """Start Chromium until the block ends. Skip the test if the system has none."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium; see .ci/install-parts")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=DEADLINE_S * 1000)
        yield started
        started.close()
