"""The names in the targets file, read without plugins, for the completion of a command line."""

from llmb.paths import targets_file
from llmb.values.errors import SpecError
from llmb.values.toml_files import read_toml


def target_names() -> list[str]:
    """Return the names of the targets file. Return none if the file is missing or invalid, which `doctor` reports."""
    try:
        return list(read_toml(targets_file()))
    except SpecError:
        return []
