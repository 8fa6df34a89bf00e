"""Pieces of bash: settings with every value quoted, and the files of this package."""

from __future__ import annotations

import shlex
from importlib.resources import files


def assignments(**values: str) -> str:
    """A line for each variable."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())


def library(name: str) -> str:
    """The text of a file of this package, without its last line's end."""
    return files("llmb_local").joinpath(name).read_text().rstrip("\n")
