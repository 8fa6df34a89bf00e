"""Bash files of this package."""

from llmb import resource_text


def bash_file(name: str) -> str:
    """Return the text of a bash file of this package, without the final newline."""
    return resource_text("llmb_local", name).rstrip("\n")
