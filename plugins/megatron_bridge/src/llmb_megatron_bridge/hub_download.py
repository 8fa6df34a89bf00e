"""Configurations and tokenizers of models at Hugging Face, in the cache that all runs share."""

from typing import Any

from llmb import Run, Task, assignments, resource_text

FILE_TYPES = ("json", "txt", "model", "jinja", "py")
"""Endings of the files that are downloaded: configuration and tokenizer, but no weights."""


def hub_tasks(run: Run[Any]) -> tuple[Task, ...]:
    """Return a task for each repository of ``hub_downloads``, which the scripts read without internet access."""
    return tuple(_task(run, repository) for repository in run.settings.get("hub_downloads", ()))


def _task(run: Run[Any], repository: str) -> Task:
    """Return the task that downloads all files of a repository except the weights."""
    folder = f"{run.paths.cache}/huggingface/hub/models--{repository.replace('/', '--')}"
    values = assignments(repository=repository, folder=folder, file_types="|".join(FILE_TYPES))
    return Task(
        key=f"hub-{repository.replace('/', '-').lower()}",
        kind=f"configuration and tokenizer of {repository}",
        work=f"{values}\n{resource_text(__package__, 'hub_fetch.sh')}",
        check=f'{assignments(folder=folder)}\n[ -s "$folder/refs/main" ]',
        space_gb=0.1,
    )
