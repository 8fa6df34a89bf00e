"""What the words of a recipe stand for: paths on the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import Run

DATASET_FOLDER = "llama3.1-dataset"
"""Below the cache: the data of Llama 3.1 8B and 70B, under the name that the publisher gives it."""


def places(run: Run[Any]) -> Mapping[str, str]:
    """What a word in braces stands for in a recipe, beside ``{run}``: paths, the same in a container as outside."""
    cache = run.paths.cache
    found = {
        "nemo": run.options.nemo,
        "index_mapping": run.options.index_mapping_dir or f"{cache}/index_mapping",
        "dataset": f"{cache}/{DATASET_FOLDER}",
    }
    if "tokenizer" in run.settings:
        found["tokenizer"] = f"{cache}/tokenizers/{run.settings['tokenizer']['repository']}"
    return found
