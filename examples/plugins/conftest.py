"""These plugins are not installed where the repository's tests run: each test finds their metadata on the path."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.examples import write_metadata


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installer would write of each."""
    return write_metadata(tmp_path_factory.mktemp("site"))


@pytest.fixture(autouse=True)
def _as_if_installed(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(metadata))
