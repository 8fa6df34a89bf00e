"""Dry run of the NeMo Launcher example at every published scale, without side effects."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb

EXAMPLE = Path(__file__).parents[1] / "examples" / "llama3.1-70b-nemo.toml"
GPUS = [64, 128, 256, 512, 1024, 2048]


@pytest.fixture
def document(toy: Any) -> dict[str, Any]:
    done = toy.llmb("run", str(EXAMPLE), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    assert not toy.home.exists()
    return dict(json.loads(done.stdout))


@pytest.fixture
def planned(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["runs"])


def test_the_example_has_a_job_for_every_published_scale_and_dtype(planned: list[dict[str, Any]]) -> None:
    assert [(run["dtype"], run["gpus"]) for run in planned] == [(d, g) for d in ("bf16", "fp8") for g in GPUS]
    for run in planned:
        job, nodes = run["job"], run["gpus"] // 8
        assert (job["image"], job["nodes"], job["tasks_per_node"]) == ("nvcr.io/nvidia/nemo:24.09", nodes, 8)
        [phase] = job["phases"]
        assert {
            f"model.global_batch_size={16 * nodes}",
            f"trainer.num_nodes={nodes}",
            "model.tensor_model_parallel_size=4",
            "model.pipeline_model_parallel_size=4",
            "model.virtual_pipeline_model_parallel_size=5",
            "model.context_parallel_size=2",
            f"model.fp8={str(run['dtype'] == 'fp8').lower()}",
        } <= set(phase["command"])
        assert phase["ranks"] == "all"
        assert run["differences"] == []
        assert f"#SBATCH --nodes={nodes}" in run["script"]


def test_all_runs_share_image_tokenizer_and_data(document: dict[str, Any], planned: list[dict[str, Any]]) -> None:
    for run in planned:
        image, tokenizer, *shards = [document["preparations"][task["key"]] for task in run["preparation"]]
        assert (image["kind"], tokenizer["kind"]) == ("container image", "tokenizer of meta-llama/Meta-Llama-3-8B")
        assert [shard["kind"] for shard in shards] == ["shard 00 of the Pile", "shard 01 of the Pile"]
        assert (tokenizer["job"], tokenizer["secrets"]) == (None, ["HF_TOKEN"])
        assert [(shard["job"]["nodes"], shard["space_gb"]) for shard in shards] == [(1, 50), (1, 50)]
    assert len(document["preparations"]) == 4


@pytest.mark.parametrize(
    ("recipe", "gpus", "window", "config", "message"),
    [
        ("llama3.1-70b", 64, [0, 0], {}, "nemo_launcher counts steps from 1 to 50"),
        ("llama3.1-70b", 64, [0, 49], {}, "nemo_launcher counts steps from 1 to 50"),
        ("llama3.1-70b", 64, [1, 50], {}, ""),
        ("llama3.1-70b", 64, [41, 44], {}, ""),
        ("llama3.1-70b", 64, [41, 44], {"trainer.log_every_n_steps": 5}, "nemo_launcher prints every 5 steps"),
        ("grok1-314b", 512, [41, 44], {}, "nemo_launcher prints every 10 steps"),
        ("grok1-314b", 512, [35, 44], {}, ""),
        ("grok1-314b", 512, [40, 40], {}, ""),
        ("grok1-314b", 512, [41, 44], {"trainer.log_every_n_steps": 1}, ""),
    ],
)
def test_a_window_without_a_printed_step_is_an_error(
    tmp_path: Path, recipe: str, gpus: int, window: list[int], config: dict[str, int], message: str
) -> None:
    workload = {"recipe": f"nemo_launcher/{recipe}", "gpu_type": "h100", "dtype": "bf16", "gpus": gpus}
    tables = {"workload": workload, "measure": {"window": window}, "framework": {"config": config}}
    file = tmp_path / "spec.toml"
    file.write_text(tomli_w.dumps({**tables, "target": {"scheduler": "slurm"}}))
    found = []
    try:
        llmb.plan(llmb.load(file), registry=llmb.PluginRegistry())
    except llmb.SpecError as error:
        found = [(fault.key, fault.message) for fault in error.faults]
    assert [key for key, _ in found] == (["measure.window"] if message else [])
    assert all(text.startswith(f"window {window} ") and message in text for _, text in found)


def count_calls(runs: int) -> int:
    """Return the number of calls of Python functions that planning takes for so many numbers of GPUs."""
    workload = {"recipe": "nemo_launcher/llama3.1-8b", "gpu_type": "h100", "dtype": "bf16"}
    gpus = [8 * nodes for nodes in range(1, runs + 1)]
    spec = {"workload": {**workload, "gpus": gpus}, "target": {"scheduler": "slurm", "workdir": "/scratch"}}
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert len(llmb.plan(llmb.load(spec))) == runs
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_of_planning_grows_linearly_with_the_number_of_runs() -> None:
    _first, few, more, most = (count_calls(runs) for runs in (1, 25, 50, 100))  # the first loads the plugins
    assert most - more < 2.04 * (more - few)  # 2.008; a generator over all runs for each run makes it 2.09
