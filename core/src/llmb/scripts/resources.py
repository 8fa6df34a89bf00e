"""Files that a package ships beside its modules."""

from __future__ import annotations

from importlib.resources import files


def resource_text(package: str, name: str) -> str:
    """The text of a file in a package's folder, such as a script that becomes one of a job's files."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
