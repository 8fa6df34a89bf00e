"""What the words of a recipe stand for: paths on the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import Repository, Run

DATASET_FOLDER = "llama3.1-dataset"
"""Below the cache: the data of Llama 3.1 8B and 70B, under the name that the publisher gives it."""


def places(run: Run[Any]) -> Mapping[str, str]:
    """What a name in braces stands for in a recipe: a path on the target, the same in a container as outside."""
    cache = run.paths.cache
    found = {
        "run": run.paths.run,
        "nemo": run.options.nemo,
        "index_mapping": run.options.index_mapping_dir or f"{cache}/index_mapping",
        "dataset": f"{cache}/{DATASET_FOLDER}",
    }
    settings = run.settings
    if "tokenizer" in settings:
        found["tokenizer"] = f"{cache}/tokenizers/{settings['tokenizer']['repository']}"
    return found


def repository_of(run: Run[Any]) -> Repository | None:
    """The publisher's repository, where the recipe needs a file of it."""
    settings = run.settings
    return Repository(**settings["repository"]) if "repository" in settings else None


def placed(value: Any, names: Mapping[str, str]) -> Any:
    """A setting as plain data, with every ``{name}`` in it replaced, and "null" as what it stands for."""
    if isinstance(value, Mapping):
        return {key: placed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [placed(item, names) for item in value]
    if not isinstance(value, str):
        return value
    for name, path in names.items():
        value = value.replace(f"{{{name}}}", path)
    return None if value == "null" else value
