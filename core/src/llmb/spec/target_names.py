"""The targets file and the names in it, read without plugins, for the completion of a command line."""

from __future__ import annotations

from pathlib import Path

from llmb.paths import config_folder
from llmb.values.errors import SpecError
from llmb.values.toml_files import read_toml


def targets_file() -> Path:
    """Return the path of ``targets.toml`` in the user's configuration directory."""
    return config_folder() / "targets.toml"


def target_names() -> list[str]:
    """Return the names of the targets file. Return none if the file is missing or invalid, which `doctor` reports."""
    try:
        return list(read_toml(targets_file()))
    except SpecError:
        return []
