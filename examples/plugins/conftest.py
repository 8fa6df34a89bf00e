"""These plugins are not installed where the repository's tests run: each test finds their metadata on the path."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installer would write of each."""
    folder = tmp_path_factory.mktemp("site")
    for file in Path(__file__).parent.glob("*/pyproject.toml"):
        project = tomllib.loads(file.read_text())["project"]
        info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {each}\n" for each in project["dependencies"])
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n{needs}"
        )
        groups = project["entry-points"].items()
        entries = [f"[{group}]\n{name} = {value}\n" for group, each in groups for name, value in each.items()]
        (info / "entry_points.txt").write_text("".join(entries))
    return folder


@pytest.fixture(autouse=True)
def _as_if_installed(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(metadata))
