"""The example of a PyTorch script of one's own: two gloo ranks with torchrun, on this machine and on Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from parts.deadline import DEADLINE_S
from parts.pages import blocks
from parts.repository import ROOT

import llmb

EXAMPLE = ROOT / "examples/own-script"


def test_the_page_shows_keys_of_the_example() -> None:
    [shown] = [block.text for block in blocks("docs/declared.md") if block.note("tested by")]
    example = tomllib.loads((EXAMPLE / "mylm.toml").read_text())
    assert tomllib.loads(shown).items() <= example.items()


def test_the_example_starts_torchrun_once_on_each_node() -> None:
    [planned] = llmb.plan(llmb.load(EXAMPLE / "spec.toml", overrides=["workload.gpus=4"]))
    assert planned.job.phases[0].ranks == "node"
    assert "torchrun --nnodes=1 --nproc-per-node=4 " in planned.job.files[f"{planned.job.directory}/command.sh"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work directory that all runs share, so that the environment is created once."""
    return tmp_path_factory.mktemp("own-script")


def run_example(cache: Path, *overrides: str) -> dict[str, Any]:
    """Run the example with ``llmb run``, and return the run as ``--json`` prints it."""
    words = [word for each in overrides for word in ("--set", each)]
    env = {**os.environ, **torch_source(), "LLMB_HOME": str(cache)}
    command = [sys.executable, "-m", "llmb", "run", str(EXAMPLE / "spec.toml"), *words, "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    [run] = json.loads(done.stdout)["runs"]
    return dict(run)


def torch_source() -> dict[str, str]:
    """Return the variable by which uv finds the CPU build of PyTorch: pip's folder if set, else PyTorch's index."""
    links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS")
    return {"UV_FIND_LINKS": links} if links else {"UV_TORCH_BACKEND": "cpu"}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.xdist_group("torch")
def test_two_ranks_train_on_this_machine(cache: Path) -> None:
    run = run_example(cache, "target.lock=" + json.dumps(str(cache / "machine.lock")))
    assert (run["state"], run["recipe"]) == ("completed", "mylm/mylm")
    metrics = run["metrics"]
    assert metrics["tokens_per_s"] == pytest.approx(16 * 128 / metrics["step_time_s"])
    assert metrics["flops_per_sequence"] == 6 * 37e3 * 128
    assert metrics["mfu"] is not None
    assert (Path(run["directory"]) / "framework/train.py").read_text() == (EXAMPLE / "train.py").read_text()


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.xdist_group("torch")
@pytest.mark.usefixtures("slurm")
def test_a_rank_on_each_of_two_nodes_trains_on_slurm(cache: Path) -> None:
    target = {"scheduler": "slurm", "workdir": str(cache / "work"), "gpus_per_node": 1, "exclusive": False}
    run = run_example(cache, *(f"target.{key}={json.dumps(value)}" for key, value in target.items()))
    assert run["state"] == "completed"
    script = (Path(target["workdir"]) / "runs" / run["run_id"] / "command.sh").read_text()
    assert "torchrun --nnodes=2 --nproc-per-node=1 " in script
