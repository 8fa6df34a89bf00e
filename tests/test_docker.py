"""Whole runs of the toy framework in containers of a real Docker engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real


def test_a_run_in_an_image_has_the_same_record_as_one_without(toy_docker: Any) -> None:
    run = toy_docker.run(workload={"gpus": 2}, framework={"warm_up": True, "output": True})
    assert run["state"] == "completed", run
    assert run["metrics"]["step_time_s"] == 0.5
    record = Path(run["directory"])
    assert toy_docker.steps_of(record) == [1, 2, 3, 4, 5]
    assert {log.name for log in (record / "logs").iterdir()} == {"warm-up.0.0.log", "train.0.0.log", "train.0.1.log"}
    order = [(line.split()[0], line.split()[2]) for line in toy_docker.journal()]
    assert order[:2] == [("begin", "warm-up.0"), ("end", "warm-up.0")]
    assert sorted(order[2:]) == [("begin", "train.0"), ("begin", "train.1"), ("end", "train.0"), ("end", "train.1")]
