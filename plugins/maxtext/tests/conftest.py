"""The runs of these tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from llmb import Run


@pytest.fixture
def load_run(load_run_of: Callable[..., Run[Any]]) -> Callable[..., Run[Any]]:
    """Loads a run of ``maxtext/llama2-70b`` by GPU type, dtype and number of GPUs."""
    return partial(load_run_of, "maxtext/llama2-70b")
