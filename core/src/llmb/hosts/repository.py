"""A framework's repositories, fetched on the target's host."""

from __future__ import annotations

import shlex

from llmb.scripts.resources import resource_text
from llmb.values.frozen import content_key
from llmb.values.job import Repository, Task

SPACE_GB = 0.5  # one commit of a training framework, without its history


def repository_task(repository: Repository, cache: str) -> Task:
    """Fetch exactly one commit into `Repository.folder`, and know whether all its files are there as they were.

    The folder appears whole or not at all. It is looked through each time, since old files are deleted from scratch
    file systems one by one.
    """
    folder = repository.folder(cache)
    settings = {"folder": folder, "url": repository.url, "commit": repository.commit}
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return Task(
        key=f"repository-{repository.name}-{content_key(*settings.values())}",
        kind="repository",
        work="\n".join([*lines, resource_text("llmb.hosts", "fetch_commit.sh")]),
        check="\n".join(
            [
                f"cd {shlex.quote(folder)} &&",
                'changed=$(git -c safe.directory="$PWD" status --porcelain --untracked-files=no) &&',
                'test -z "$changed" &&',
                f'git -c safe.directory="$PWD" rev-parse HEAD | grep -q ^{shlex.quote(repository.commit)}',
            ]
        ),
        space_gb=SPACE_GB,
    )
