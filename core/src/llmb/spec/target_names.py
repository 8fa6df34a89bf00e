"""The names in the targets file, read without plugins, for the completion of a command line."""

from __future__ import annotations

import tomllib

from llmb.paths import config_folder


def target_names() -> list[str]:
    """Return the names of the targets file. Return none if the file is missing or invalid, which `doctor` reports."""
    try:
        return list(tomllib.loads((config_folder() / "targets.toml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []
