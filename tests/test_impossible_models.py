"""Models that no framework could train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

import llmb

TARGET = {"scheduler": "slurm", "account": "me", "partition": "batch"}


def planned(file: Path, recipe: str, *, gpu_type: str, dtype: str, gpus: int, **tables: Any) -> Any:
    workload = {"recipe": recipe, "gpu_type": gpu_type, "dtype": dtype, "gpus": gpus}
    file.write_text(tomli_w.dumps({"workload": workload, "target": TARGET, **tables}))
    return llmb.plan(llmb.load(file), registry=llmb.PluginRegistry())


NEMO_CAN_OVERRIDE = "layers, hidden, ffn, heads, query_groups, vocab, seq_len, experts, top_k, head_size"


@pytest.mark.parametrize(
    ("recipe", "gpus", "tables", "line"),
    [
        (
            "nemo_launcher/llama3.1-70b",
            64,
            {"model": {"hidden": 8191}},
            "model.hidden: hidden size 8191 is not divisible by 64 heads; expected a multiple of 64",
        ),
        (
            "nemo_launcher/llama3.1-70b",
            64,
            {"model": {"seq_len": 8191}, "parallelism": {"cp": 2}},
            "model.seq_len: 8191 tokens are not divisible by 8: each of cp = 2 ranks takes two chunks, "
            "sequence parallelism divides by tp = 4; expected a multiple of 8",
        ),
        (
            "megatron_bridge/llama3.1-70b@25.12",
            128,
            {"model": {"hidden": 8200}},
            "model.hidden: hidden size 8200 is not divisible by 64 heads; expected a multiple of 64",
        ),
        (
            "megatron_bridge/llama3.1-70b@25.12",
            128,
            {"model": {"seq_len": 8190}, "parallelism": {"cp": 2}},
            "model.seq_len: 8190 tokens are not divisible by 8: each of cp = 2 ranks takes two chunks, "
            "sequence parallelism divides by tp = 4; expected a multiple of 8",
        ),
        (
            "nemo_launcher/grok1-314b",
            512,
            {"model": {"top_k": 9}},
            "model.top_k: 9 experts per token are more than the model's 8; expected at most 8",
        ),
        (
            "nemo_launcher/grok1-314b",
            512,
            {"model": {"sliding_window": 64}},
            "model.sliding_window: nemo_launcher cannot override this key; expected the recipe's value; "
            f"nemo_launcher can override {NEMO_CAN_OVERRIDE}",
        ),
        (
            "nemo_launcher/grok1-314b",
            512,
            {"parallelism": {"pp": 2, "vp": 1, "pipeline_layout": "Et*32|t*32L"}},
            "parallelism.pipeline_layout: nemo_launcher cannot override this key; expected the recipe's value; "
            f"nemo_launcher can override {NEMO_CAN_OVERRIDE}",
        ),
        (
            "nemo_launcher/grok1-314b",
            512,
            {"model": {"shared_expert_ffn": 1024}},
            "model.shared_expert_ffn: nemo_launcher cannot override this key; expected the recipe's value; "
            f"nemo_launcher can override {NEMO_CAN_OVERRIDE}",
        ),
        (
            "maxtext/llama2-70b",
            64,
            {"model": {"experts": 8}},
            "model.experts: invalid value 8: the recipe's model has no experts; expected 1",
        ),
    ],
)
def test_an_impossible_model_is_rejected_with_the_reason(
    tmp_path: Path, recipe: str, gpus: int, tables: dict[str, Any], line: str
) -> None:
    with pytest.raises(llmb.SpecError) as raised:
        planned(tmp_path / "spec.toml", recipe, gpu_type="h100", dtype="bf16", gpus=gpus, **tables)
    assert [str(error).partition(": ")[2] for error in raised.value.faults] == [line]
