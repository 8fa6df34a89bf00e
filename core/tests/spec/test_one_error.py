"""One mistake in a spec is one error, however many checks fail or runs have it."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"parallelism": {"tp": 3}}, "parallelism.tp"),  # 64 GPUs are not divisible by 3 either
        ({"parallelism": {"pp": 3}}, "model.layers"),
        ({"model": {"layers": 79}, "parallelism": {"pp": 4}}, "model.layers"),
        ({"model": {"hidden": 8191}}, "model.hidden"),
        ({"model": {"top_k": 2, "expert_ffn": 64}}, "model.expert_ffn"),
        ({"workload": {"gpus": 1028}, "target": {"scheduler": "slurm", "gpus_per_node": 8}}, "workload.gpus"),
    ],
)
def test_one_wrong_value_that_fails_several_checks_is_one_error(spec: Any, tables: dict[str, Any], key: str) -> None:
    assert [*spec.big(**tables).errors()] == [key]


def test_two_wrong_degrees_are_two_errors(spec: Any) -> None:
    assert {*spec.big(parallelism={"tp": 3, "fsdp": 7}).errors()} == {"parallelism.tp", "parallelism.fsdp"}
