"""Tasks that fetch the git repositories of a framework on the target's host."""

import functools
import shlex

from llmb.files import resource_text
from llmb.scripts.job_functions import assignments
from llmb.values.environment import Repository
from llmb.values.frozen import content_key
from llmb.values.job import Task

SPACE_GB = 0.5  # one commit of a training framework, without its history


@functools.lru_cache(maxsize=64)
def repository_task(repository: Repository, cache: str) -> Task:
    """Return the task that fetches one commit into ``repository.folder(cache)``.

    The folder appears atomically. The check runs ``git status`` over all files, because scratch file systems delete old
    files one by one.
    """
    folder = repository.folder(cache)
    settings = assignments(folder=folder, url=repository.url, commit=repository.commit)
    return Task(
        key=f"repository-{repository.name}-{content_key(folder, repository.url, repository.commit)}",
        kind="repository",
        work=f"{settings}\n{resource_text('llmb.hosts', 'git_repository.sh')}",
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
