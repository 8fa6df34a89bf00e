"""Plans of tables for the tests of a framework."""

from __future__ import annotations

import pytest

from llmb.testing import plan_tables
from llmb.values.errors import SpecError


def test_a_list_in_the_tables_is_an_error() -> None:
    workload = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": [64, 128]}
    with pytest.raises(SpecError, match="the tables make 2 runs; expected one value instead of each list"):
        plan_tables({"workload": workload})
