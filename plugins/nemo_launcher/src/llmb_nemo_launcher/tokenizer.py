"""Task that places the tokenizer of a recipe into the cache, and the check that it is complete."""

import functools
import json
import shlex
from collections.abc import Mapping
from typing import Any

from llmb import Repository, Run, Task, assignments, content_key, resource_text, with_paths
from llmb_nemo_launcher.recipe_placeholders import target_paths

CHECK = "tokenizer_check.sh"

CONFIG = "tokenizer_config.json"
"""The file that names the class of a tokenizer. If the repository lacks it, the recipe has its content."""


def tokenizer_task(run: Run[Any]) -> Task:
    """Return the task that downloads or copies the files of the run's tokenizer, with the check of these files."""
    tokenizer, repository = run.settings["tokenizer"], Repository.of(run.settings)
    config = json.dumps(with_paths(tokenizer["config"], run.paths)) if "config" in tokenizer else ""
    sources = repository.folder(run.paths.cache) if repository else None
    return _task(tokenizer, config, sources, target_paths(run)["tokenizer"])


@functools.lru_cache(maxsize=16)
def _task(tokenizer: Mapping[str, Any], config: str, sources: str | None, folder: str) -> Task:
    """Return the task, once for all runs of a sweep. ``sources`` is the folder of the publisher's repository, if any.

    ``config`` is the content of `CONFIG`, empty if the repository of the tokenizer has this file.
    """
    script, settings = _copy(tokenizer, sources) if sources else _download(tokenizer)
    lines = [assignments(folder=folder, config=config, **settings), f"files=({shlex.join(tokenizer['files'])})"]
    lines += [resource_text(__package__, CHECK), resource_text(__package__, script)]
    names = [*tokenizer["files"], *([CONFIG] if config else [])]
    comment = f"# {folder} contains {' and '.join(names)}"
    complete = " && ".join(f"is_complete {shlex.quote(f'{folder}/{name}')}" for name in names)
    return Task(
        key=f"tokenizer-{content_key(tokenizer['repository'], *tokenizer['files'], *([config] if config else []))}",
        kind=f"tokenizer of {tokenizer['repository']}",
        work="\n".join(lines),
        check=f"{comment}\n{resource_text(__package__, CHECK)}\n{complete}",
        secrets=("HF_TOKEN",) if tokenizer["kind"] == "gated" else (),
    )


def _download(tokenizer: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """Return the script and settings for a download from Hugging Face.

    The host of the target runs the script, because compute nodes may have no internet access.
    """
    gated = "yes" if tokenizer["kind"] == "gated" else ""
    return "tokenizer_fetch.sh", {"repository": tokenizer["repository"], "gated": gated}


def _copy(tokenizer: Mapping[str, Any], sources: str) -> tuple[str, Mapping[str, str]]:
    """Return the script and settings for a copy from the publisher's repository.

    llmb fetches the repository before it runs the tasks of a dataset.
    """
    return "tokenizer_copy.sh", {"source": f"{sources}/{tokenizer['folder']}"}
