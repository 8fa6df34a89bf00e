"""Pieces of bash, which are files of this package."""

from __future__ import annotations

from llmb import resource_text


def library(name: str) -> str:
    """The text of a file of this package, without its last line's end."""
    return resource_text("llmb_local", name).rstrip("\n")
