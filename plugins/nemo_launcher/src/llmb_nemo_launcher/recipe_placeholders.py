"""Paths on the target that a recipe names in braces."""

from collections.abc import Mapping
from typing import Any

from llmb import Run

PILE_FOLDER = "llama3.1-dataset"
"""Folder of the Pile below the cache, with the name that the publisher uses. Llama 3.1 8B and 70B share it."""


def target_paths(run: Run[Any]) -> Mapping[str, str]:
    """Return the path for each name that a recipe may use in braces, besides ``{run}`` and ``{cache}``.

    The paths are the same inside and outside a container.
    """
    cache = run.paths.cache
    paths = {
        "nemo": run.options.nemo,
        "index_mapping": run.options.index_mapping_dir or f"{cache}/index_mapping",
        "dataset": f"{cache}/{PILE_FOLDER}",
    }
    if "tokenizer" in run.settings:
        paths["tokenizer"] = f"{cache}/tokenizers/{run.settings['tokenizer']['repository']}"
    return paths
