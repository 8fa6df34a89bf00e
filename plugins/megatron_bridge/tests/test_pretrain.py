"""Megatron-Bridge's ``pretrain()`` on this machine's CPU, run by llmb with the local scheduler."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from parts.deadline import DEADLINE_S

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.xdist_group("torch"),
]  # the environment is created once; the lock of the machine lets one model train at a time

TINY: dict[str, dict[str, Any]] = {
    "workload": {"recipe": "megatron_bridge/llama3-tiny", "gpu_type": "cpu", "dtype": "fp32", "gpus": 1},
    "target": {"scheduler": "local"},
}


def torch_source() -> dict[str, str]:
    """Return the variable by which uv finds the CPU build of PyTorch: pip's folder if set, else PyTorch's index."""
    if os.environ.get("UV_FIND_LINKS") or os.environ.get("UV_TORCH_BACKEND"):
        return {}
    configured = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.find-links"],
                                capture_output=True, text=True, check=False)  # fmt: skip
    links = os.environ.get("PIP_FIND_LINKS") or configured.stdout.strip()
    return {"UV_FIND_LINKS": links} if links else {"UV_TORCH_BACKEND": "cpu"}


class Trainings:
    """Runs that share a home, so that the environment is created once."""

    def __init__(self, folder: Path) -> None:
        self.spec = folder / "tiny.toml"
        self.spec.write_text(tomli_w.dumps(TINY))
        self.env = {**os.environ, **torch_source(), "LLMB_HOME": str(folder / "home")}

    def __call__(self, *overrides: str) -> tuple[dict[str, Any], list[dict[str, str]]]:
        """Run the spec with the overrides. Return the run and its steps."""
        words = [word for override in overrides for word in ("--set", override)]
        done = subprocess.run(
            [sys.executable, "-m", "llmb", "run", str(self.spec), *words, "--json"],
            env=self.env, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        [run] = json.loads(done.stdout)["runs"]
        steps = Path(run["directory"]) / "steps.csv"
        return run, list(csv.DictReader(steps.read_text().splitlines())) if steps.exists() else []


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(tmp_path_factory.mktemp("pretrain"))


def test_one_process_trains_and_its_steps_are_measured(train: Trainings) -> None:
    run, steps = train()
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert [int(step["step"]) for step in steps] == list(range(1, 51))
    assert float(steps[-1]["loss"]) < float(steps[0]["loss"])
    mean = sum(float(step["time_s"]) for step in steps[34:44]) / 10
    assert run["metrics"]["step_time_s"] == pytest.approx(mean)
    assert run["metrics"]["mfu"] > 0


@pytest.mark.parametrize(("tp", "batch"), [(1, 16.0), (2, 16.0)])
def test_two_processes_train_one_model_and_each_logs_a_part(train: Trainings, tp: int, batch: float) -> None:
    run, steps = train("workload.gpus=2", f"parallelism.tp={tp}", "workload.steps=6", "measure.window=[3, 6]")
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert [float(step["global batch size"]) for step in steps] == [batch] * 6
    assert [float(step["tflops_per_gpu"]) for step in steps] == [
        0.0
    ] * 6  # the log has one decimal, and the model is very small
    first, last = (Path(run["directory"]) / "logs" / f"train.0.{rank}.log" for rank in (0, 1))
    assert ("Step Time : " in first.read_text(), "elapsed time" in first.read_text()) == (True, False)
    assert ("Step Time : " in last.read_text(), "elapsed time" in last.read_text()) == (False, True)


def test_two_processes_train_half_of_the_experts_each(train: Trainings) -> None:
    short = ("workload.steps=6", "measure.window=[3, 6]")
    run, steps = train("workload.recipe='megatron_bridge/moe-tiny'", "workload.gpus=2", *short)
    assert run["state"] == "completed", f"{run['reason']}, {run['failure']}"
    assert [int(step["step"]) for step in steps] == [1, 2, 3, 4, 5, 6]
    assert float(steps[-1]["loss"]) < float(steps[0]["loss"])
    projections, scores, experts, vocabulary = (
        128 * 32 * (2 * 4 + 2 * 2),
        2 * 4 * 32 * 64,
        2 * 3 * 128 * 128,
        1024 * 128,
    )
    assert run["metrics"]["flops_per_sequence"] == 128 * 6 * (2 * (projections + scores + experts) + vocabulary)
    assert run["metrics"]["mfu"] > 0


def test_overrides_reach_the_framework_and_an_unknown_key_is_reported(train: Trainings) -> None:
    shorter = ("workload.steps=4", "measure.window='last'")
    run, steps = train(*shorter, "framework.config={'optimizer.lr' = 5e-4}")
    assert (run["state"], {float(step["learning rate"]) for step in steps}) == ("completed", {5e-4})
    run, _ = train(*shorter, "framework.config={'optimizer.no_such_key' = 1}")
    assert run["state"] == "failed"
    assert "unknown key optimizer.no_such_key in Megatron-Bridge's configuration" in str(run["failure"])
