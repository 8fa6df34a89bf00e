"""Fixtures of the Megatron-Bridge tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import Run


@pytest.fixture
def load_run(load_run_of: Callable[..., Run[Any]]) -> Callable[..., Run[Any]]:
    """Return a function that loads a run by the recipe's name, GPU type, dtype and number of GPUs."""
    return lambda recipe, *point, **tables: load_run_of(f"megatron_bridge/{recipe}", *point, **tables)
