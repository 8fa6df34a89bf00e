"""Paths and values that recipes name in braces, besides those that every framework has."""

from __future__ import annotations

from typing import Any

from llmb import Repository, Run, with_paths


def path_names(run: Run[Any]) -> dict[str, str]:
    """Return the words in braces: the repository, the length of a sequence, and the recipe's own folders.

    The option ``checkpoint`` of the spec replaces the folder of the recipe.
    """
    fetched = Repository.of(run.settings)
    names = {"repository": fetched.folder(run.paths.cache)} if fetched else {}
    names["seq_len"] = str(run.seq_len)
    folders = dict(run.settings.get("folders", {}))
    if run.options.checkpoint:
        folders["checkpoint"] = run.options.checkpoint
    return {**names, **with_paths(folders, run.paths, names=names)}
