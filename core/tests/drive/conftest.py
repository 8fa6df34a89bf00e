"""The simulated disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .fake_process import Disk
from .world import replace_what_is_not_simulated


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Return a disk of which each effect is a boundary at which a process may be killed."""
    disk = Disk()
    disk.install(monkeypatch)
    replace_what_is_not_simulated(monkeypatch)
    yield disk
    assert disk.process is None, "a simulated process is still acting"
