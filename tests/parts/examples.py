"""Projects as if they were installed: metadata in a folder, and the paths of their packages."""

from __future__ import annotations

import tomllib
from pathlib import Path

from parts.wheels import EXAMPLES

SOURCES = [folder / "src" for folder in EXAMPLES]


def write_metadata(folder: Path) -> Path:
    """Write the metadata of each example plugin below a folder, as an installer does."""
    for example in EXAMPLES:
        write_project_metadata(example, folder)
    return folder


def write_project_metadata(root: Path, folder: Path) -> None:
    """Write the metadata of the project at ``root`` below a folder."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))
    groups = project["entry-points"].items()
    entries = [f"[{group}]\n{name} = {value}\n" for group, each in groups for name, value in each.items()]
    (info / "entry_points.txt").write_text("".join(entries))
