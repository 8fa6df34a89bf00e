"""Whole runs of the toy framework on a real Slurm cluster."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.real


def test_a_run_is_submitted_followed_and_recorded(toy_slurm: Any) -> None:
    run = toy_slurm.run(workload={"gpus": 2})
    assert run["state"] == "completed"
    assert run["metrics"]["step_time_s"] == 0.5
    assert toy_slurm.jobs()[run["run_id"]] == [run["job_id"]]
    [record] = toy_slurm.records
    assert toy_slurm.steps_of(record) == [1, 2, 3, 4, 5]
    assert len(toy_slurm.journal("begin")) == 2
