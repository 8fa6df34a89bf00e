"""Fixtures of the MaxText tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from llmb import Run


@pytest.fixture
def load_run(load_run_of: Callable[..., Run[Any]]) -> Callable[..., Run[Any]]:
    """Return a function that loads a run of ``maxtext/llama2-70b`` by GPU type, dtype and number of GPUs."""
    return partial(load_run_of, "maxtext/llama2-70b")
