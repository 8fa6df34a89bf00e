"""Paths and values that recipes name in braces, besides those that every framework has."""

from typing import Any

from llmb import Repository, Run, with_paths


def scripts_folder(run: Run[Any]) -> str:
    """Return the folder of the publisher's scripts in the cache, or "" if the recipe has no repository."""
    fetched = Repository.of(run.settings)
    return f"{fetched.folder(run.paths.cache)}/{run.settings['scripts']}" if fetched else ""


def path_names(run: Run[Any]) -> dict[str, str]:
    """Return the words in braces: the repository, the sequences, and the recipe's own folders.

    ``text_multiple`` is the number by which the length of each text in a packed sequence is divisible: context
    parallelism divides a text into two parts for each rank. The option ``checkpoint`` of the spec replaces the folder
    of the recipe.
    """
    fetched = Repository.of(run.settings)
    names = {"repository": fetched.folder(run.paths.cache)} if fetched else {}
    cp = run.parallelism.cp
    names |= {"seq_len": str(run.seq_len), "text_multiple": str(2 * cp if cp > 1 else 1)}
    folders = dict(run.settings.get("folders", {}))
    if run.options.checkpoint:
        folders["checkpoint"] = run.options.checkpoint
    return {**names, **with_paths(folders, run.paths, names=names)}
