"""Fixtures of the NeMo Launcher tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import Run


@pytest.fixture
def load_run(load_run_of: Callable[..., Run[Any]]) -> Callable[..., Run[Any]]:
    """Return a function that loads a run on H100 by the recipe's name, dtype and number of GPUs."""

    def load(recipe: str, dtype: str, gpus: int, *overrides: str, **tables: dict[str, Any]) -> Run[Any]:
        return load_run_of(f"nemo_launcher/{recipe}", "h100", dtype, gpus, *overrides, **tables)

    return load
