"""The config.json with which release 25.12.02 runs offline, read by the transformers of its image."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb import Run
from llmb_megatron_bridge.plugin import MegatronBridge

LoadRun = Callable[..., "Run[Any]"]
MODELS = {
    "8b": "meta-llama/Meta-Llama-3-8B",
    "70b": "meta-llama/Meta-Llama-3-70B",
    "405b": "meta-llama/Meta-Llama-3.1-405B",
}
READ = """
import json, sys
from transformers import AutoConfig
names = ("architectures", "num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
         "num_key_value_heads", "vocab_size", "max_position_embeddings", "rope_theta", "rms_norm_eps",
         "initializer_range", "tie_word_embeddings")
configs = {name: AutoConfig.from_pretrained(name) for name in sys.argv[1:]}
print(json.dumps({model: {name: getattr(config, name) for name in names} for model, config in configs.items()}))
"""


def cache_of(run: Run[Any]) -> dict[str, str]:
    """Return the files of the cache by their paths below HF_HOME."""
    job = MegatronBridge().build_job(run)
    return {path.removeprefix(job.env["HF_HOME"] + "/"): text for path, text in job.files.items() if "hugging" in path}


@pytest.mark.parametrize("size", MODELS)
def test_the_last_fix_needs_neither_token_nor_network(load_run: LoadRun, size: str) -> None:
    run = load_run(f"llama3.1-{size}@25.12.02", "gb300", "fp8", 128)
    job = MegatronBridge().build_job(run)
    folder = f"hub/models--{MODELS[size].replace('/', '--')}"
    config = json.loads(cache_of(run)[f"{folder}/snapshots/published/config.json"])

    assert MegatronBridge().prepare_env(run).secrets == ()
    assert {job.env["HF_HUB_OFFLINE"], job.env["TRANSFORMERS_OFFLINE"]} == {"1"}
    assert (config["num_hidden_layers"], config["hidden_size"]) == (run.model.layers, run.model.hidden)
    assert ("rope_scaling" in config) == (size == "405b")


def test_the_first_release_reads_the_hub_with_a_token(load_run: LoadRun) -> None:
    run = load_run("llama3.1-8b@25.12.00", "gb300", "fp8", 128)

    assert MegatronBridge().prepare_env(run).secrets == ("HF_TOKEN",)
    assert cache_of(run) == {}


@pytest.mark.real
@pytest.mark.slow
def test_transformers_reads_the_cache_offline(
    load_run: LoadRun, python_with: Callable[[str], str], tmp_path: Path
) -> None:
    runs = {size: load_run(f"llama3.1-{size}", "gb300", "fp8", 128) for size in MODELS}
    for path, text in (file for run in runs.values() for file in cache_of(run).items()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    offline = {"PATH": os.environ["PATH"], "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    command = [python_with("transformers==4.57.1"), "-c", READ, *MODELS.values()]
    found = json.loads(subprocess.run(command, env=offline, capture_output=True, text=True, check=True).stdout)
    for size, run in runs.items():
        read, model = found[MODELS[size]], run.model
        assert read["architectures"] == ["LlamaForCausalLM"]
        assert (read["num_hidden_layers"], read["num_key_value_heads"]) == (model.layers, model.query_groups)
        assert (read["intermediate_size"], read["num_attention_heads"]) == (model.ffn, model.heads)
        assert (read["vocab_size"], read["rope_theta"], read["rms_norm_eps"]) == (128256, 500000, 1e-5)
        assert (read["initializer_range"], read["tie_word_embeddings"]) == (0.02, False)
