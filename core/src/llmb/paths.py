"""Directories of llmb on this machine."""

import os
from pathlib import Path


def home_folder() -> Path:
    """Return ``$LLMB_HOME``, or ``llmb`` in the user's data directory: records, index and local work directory."""
    if set_by_user := os.environ.get("LLMB_HOME"):
        return Path(os.path.expanduser(set_by_user)).absolute()
    from platformdirs import user_data_path  # not needed if the variable is set

    try:
        return user_data_path("llmb", appauthor=False)
    except RuntimeError:  # the user has no home directory; HOME of the jobs is then / too
        return Path("/.local/share/llmb")


def runs_folder() -> Path:
    """Return the folder of all records."""
    return home_folder() / "runs"


def config_folder() -> Path:
    """Return ``llmb`` in the user's configuration directory: the targets file, and recipes of the user."""
    from platformdirs import user_config_path

    try:
        return user_config_path("llmb", appauthor=False)
    except RuntimeError:  # as above
        return Path("/.config/llmb")


def targets_file() -> Path:
    """Return the path of ``targets.toml`` in the user's configuration directory."""
    return config_folder() / "targets.toml"
