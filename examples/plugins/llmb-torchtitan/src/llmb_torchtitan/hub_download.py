"""Dataset and tokenizer of a recipe, downloaded from Hugging Face into the cache that all runs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import Run, Task, assignments, resource_text

TOKENIZER_FILES = r"(tokenizer\.json|tokenizer_config\.json|tokenizer\.model|vocab\.txt|vocab\.json|merges\.txt)"
"""Files that torchtitan's own download script fetches for a tokenizer."""

DATASET_FILES = r"(en/.*|dataset_info\.json|[^/]*\.py|README\.md)"
"""Files that the publisher downloads: the English texts and their description."""

DATASET_GB = 305.0
"""Size of the English texts of C4, compressed. Source: the card of allenai/c4."""


def data_folders(run: Run[Any]) -> Mapping[str, str]:
    """Return the folders of dataset and tokenizer, without those that the recipe takes from torchtitan's checkout."""
    folders = {}
    if name := run.settings.get("dataset"):
        folders["dataset"] = run.options.dataset or f"{run.paths.cache}/datasets/{_last(name)}"
    if name := run.settings.get("tokenizer"):
        folders["tokenizer"] = run.options.tokenizer or f"{run.paths.cache}/tokenizers/{_last(name)}"
    return folders


def hub_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return the tasks that download the tokenizer and the dataset, unless the spec names folders that have them."""
    folders, tasks = data_folders(run), []
    if "tokenizer" in folders and run.options.tokenizer is None:
        address = f"models/{run.settings['tokenizer']}"
        tasks.append(_task(address, folders["tokenizer"], TOKENIZER_FILES, kind="tokenizer", space_gb=0.1))
    if "dataset" in folders and run.options.dataset is None:
        address = f"datasets/{run.settings['dataset']}"
        tasks.append(_task(address, folders["dataset"], DATASET_FILES, kind="dataset", space_gb=DATASET_GB))
    return tuple(tasks)


def _task(address: str, folder: str, files: str, *, kind: str, space_gb: float) -> Task:
    values = assignments(address=address, folder=folder, files=files)
    return Task(
        key=f"hub-{address.replace('/', '-').lower()}",
        kind=f"{kind} {address.partition('/')[2]}",
        work=f"{values}\n{resource_text(__package__, 'hub_download.sh')}",
        check=f'{assignments(folder=folder)}\n[ -s "$folder/.complete" ]',
        space_gb=space_gb,
        concurrent=True,
    )


def _last(name: str) -> str:
    return name.rpartition("/")[2]
