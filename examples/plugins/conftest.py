"""Metadata of the example plugins, which are not installed when the tests of the repository run."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts.examples import write_metadata


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the metadata that an installer would write for each plugin."""
    return write_metadata(tmp_path_factory.mktemp("site"))


@pytest.fixture(autouse=True)
def _as_if_installed(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(metadata))
