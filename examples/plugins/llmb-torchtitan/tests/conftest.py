from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import RunPlan
from llmb.testing import plan_tables


@pytest.fixture
def plan_run() -> Callable[..., RunPlan]:
    """Return a function that plans the run of a spec. Tables of the test are merged over those of the spec."""

    def plan(**tables: dict[str, Any]) -> RunPlan:
        workload = {"recipe": "torchtitan/llama3.1-8b", "gpu_type": "h100", "dtype": "bf16", "gpus": 8}
        return plan_tables({**tables, "workload": workload | tables.get("workload", {})})

    return plan
