"""A site with plugins on the path of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def active_site(site: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a site whose plugins this process can import. Modules of an earlier test are forgotten."""
    monkeypatch.syspath_prepend(str(site.folder))
    yield site
    for name in [name for name in sys.modules if name.startswith("llmb_odd")]:
        del sys.modules[name]
