"""A recipe's settings, whole: what several recipes share is in files of its own and comes below theirs."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from llmb import FrozenMap, Repository, Run

DATASET_FOLDER = "llama3.1-dataset"
"""Below the cache: the data of Llama 3.1 8B and 70B, under the name that the publisher gives it."""


def settings_of(run: Run[Any]) -> Mapping[str, Any]:
    """The settings of the run's point over those that its recipe shares with others."""
    whole: Mapping[str, Any] = FrozenMap()
    for name in run.settings.get("shared", ()):
        whole = merged(whole, _shared(name))
    return merged(whole, run.settings)


@functools.cache
def _shared(name: str) -> Mapping[str, Any]:
    text = files("llmb_nemo_launcher").joinpath("shared", f"{name}.toml").read_text(encoding="utf-8")
    return FrozenMap(tomllib.loads(text))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    """Both tables; where both have a key, ``above`` counts, and tables are merged in turn."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return FrozenMap(both)


def places(run: Run[Any]) -> Mapping[str, str]:
    """What a name in braces stands for in a recipe: a path on the target, the same in a container as outside."""
    cache = run.paths.cache
    found = {
        "run": run.paths.run,
        "nemo": run.options.nemo,
        "index_mapping": run.options.index_mapping_dir or f"{cache}/index_mapping",
        "dataset": f"{cache}/{DATASET_FOLDER}",
    }
    settings = settings_of(run)
    if "tokenizer" in settings:
        found["tokenizer"] = f"{cache}/tokenizers/{settings['tokenizer']['repository']}"
    return found


def repository_of(run: Run[Any]) -> Repository | None:
    """The publisher's repository, where the recipe needs a file of it."""
    settings = settings_of(run)
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
