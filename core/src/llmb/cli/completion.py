"""Values that the shell completes: recipes, run ids, targets, frameworks and filter keys."""

from __future__ import annotations

import os
from collections.abc import Iterable

import llmb


def complete_recipe(incomplete: str) -> list[str]:
    """Return the addresses of recipes that begin so."""
    return _beginning(llmb.recipe_names(), incomplete)


def complete_framework(incomplete: str) -> list[str]:
    """Return the names of frameworks that begin so."""
    return _beginning(llmb.framework_names(), incomplete)


def complete_target(incomplete: str) -> list[str]:
    """Return the names of targets that begin so."""
    return _beginning(llmb.target_names(), incomplete)


def complete_run(incomplete: str) -> list[str]:
    """Return the ids of runs that begin so. Only the names of the records are read."""
    try:
        return _beginning(os.listdir(llmb.home_folder() / "runs"), incomplete)
    except OSError:  # there is no run yet
        return []


def complete_filter(incomplete: str) -> list[str]:
    """Return the keys of filters that begin so."""
    return [f"{key}=" for key in _beginning(FILTER_KEYS, incomplete)]


def complete_runs_or_filter(incomplete: str) -> list[str]:
    """Return run ids or, after a brace, the keys of filters that begin so."""
    if not incomplete.startswith("{"):
        return complete_run(incomplete)
    *given, key = incomplete[1:].split(" ")
    return [f"{{{' '.join([*given, each])}" for each in complete_filter(key)]


FILTER_KEYS = ("recipe", "image", "target", "gpu_type", "dtype", "gpus", "sweep", "state", "verdict", "since", "until")
"""The keys of filters. Importing them would take longer than all else."""


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
