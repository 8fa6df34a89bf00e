"""Files of models at Hugging Face in a local cache, which the scripts read without a token or internet access."""

import json
from typing import Any

from llmb import Run, Task, assignments, resource_text, with_paths

SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "intermediate_size": "ffn",
    "num_attention_heads": "heads",
    "num_key_value_heads": "query_groups",
    "vocab_size": "vocab",
}
"""Keys of config.json for each size of a model."""

REVISION = "published"
"""The name of the snapshot. The hub uses commits; any name is valid in a cache."""

FILE_TYPES = ("json", "txt", "model", "jinja", "py")
"""Endings of the files that are downloaded: configuration and tokenizer, but no weights."""


def _model_folder(parent: str, repository: str) -> str:
    """Return the folder of a repository in the cache of Hugging Face below another folder."""
    return f"{parent}/huggingface/hub/models--{repository.replace('/', '--')}"


def hub_files(run: Run[Any]) -> dict[str, str]:
    """Return the files of a cache with the model's config.json, by path; none if the recipe reads the hub itself."""
    config = run.settings.get("hub_config")
    if not config:
        return {}
    folder = _model_folder(run.paths.run, run.settings["hub_model"])
    sizes = {key: getattr(run.published_model, name) for key, name in SIZES.items()}
    text = json.dumps({**with_paths(config, run.paths), **sizes}, separators=(",\n", ": ")) + "\n"
    return {f"{folder}/refs/main": REVISION, f"{folder}/snapshots/{REVISION}/config.json": text}


def hub_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return a task for each repository of ``hub_downloads``, whose files all runs share."""
    return tuple(_task(run, repository) for repository in run.settings.get("hub_downloads", ()))


def _task(run: Run[Any], repository: str) -> Task:
    """Return the task that downloads all files of a repository except the weights."""
    folder = _model_folder(run.paths.cache, repository)
    values = assignments(repository=repository, folder=folder, file_types="|".join(FILE_TYPES))
    return Task(
        key=f"hub-{repository.replace('/', '-').lower()}",
        kind=f"configuration and tokenizer of {repository}",
        work=f"{values}\n{resource_text(__package__, 'hub_download.sh')}",
        check=f'{assignments(folder=folder)}\n[ -s "$folder/refs/main" ]',
        space_gb=0.1,
    )
