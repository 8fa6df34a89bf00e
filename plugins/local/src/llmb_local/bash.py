"""Pieces of bash, which are files of this package."""

from __future__ import annotations

from importlib.resources import files


def library(name: str) -> str:
    """The text of a file of this package, without its last line's end."""
    return files("llmb_local").joinpath(name).read_text().rstrip("\n")
