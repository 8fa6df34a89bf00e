"""FLOPs of every kind of model, against NVIDIA's own function and against the throughput that NVIDIA publishes.

`megatron_bridge-flops.csv` has what Megatron-Bridge's function returns for the configurations that its own code
resolves. `megatron_bridge-published.csv` has the rows of Megatron-Bridge's performance tables at commit 4ab94dfa
(docs/FILE:LINE) for which the architecture is known.
"""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from pathlib import Path

import attrs
import pytest

import llmb
import llmb_megatron_bridge
from llmb.analysis.flops import flops_per_sequence
from llmb.values.model import FlopFormula, Mamba, Model
from llmb.values.rules.model_rules import check_model
from llmb.values.types.check_types import decode

HERE = Path(__file__).parent
MODEL_FILES = Path(llmb_megatron_bridge.__file__).parent / "recipes" / "shared" / "models"
FIRST_OF_NEW_FORMULA = "26.06"

# GFLOP per token that a row implies differ from the formula by more than 0.3 % and by more than the rounding of its two
# numbers allows. (container, model, GPU type, precision, TFLOP/s): the difference in %.
CONTRADICTIONS = {
    ("26.02.01", "gpt-oss-120b", "b300", "bf16", "412"): 0.9,
    ("26.02", "gpt-oss-120b", "b300", "bf16", "228"): 0.4,
    ("26.08", "nemotron-3-ultra", "gb200", "fp8 mx", "923"): 1.7,
    # The publisher prints no tokens/s for this row; those of the row with the other FP8 scaling are in their place.
    ("25.09", "deepseek-v3", "h100", "fp8 sc", "330"): -2.2,
}


def read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((HERE / name).read_text().splitlines()))


def read_models() -> dict[str, Model]:
    """Return the models that recipes share, and two that have no recipe yet."""
    models = {}
    for file in MODEL_FILES.glob("*.toml"):
        model, errors = decode(tomllib.loads(file.read_text())["model"], Model, "model")
        assert model is not None, errors
        models[file.name.removesuffix(".toml")] = model
    models["nemotron-3.5-lightning"] = attrs.evolve(models["nemotron-3-nano"], mtp_depth=2, mtp_pattern="*E")
    models["nemotron-3-ultra"] = attrs.evolve(
        models["nemotron-3-super"],
        layers=108,
        hidden=8192,
        ffn=5120,
        heads=64,
        expert_ffn=5120,
        shared_expert_ffn=10240,
        latent_size=2048,
        layer_pattern=4 * "MEMEMEM*EMEMEM*EMEMEMEM*E" + "MEMEMEME",
        mamba=Mamba(heads=256, head_size=64, groups=8, state=128),
    )
    return models


MODELS = read_models()
CONFIGURATIONS = read("megatron_bridge-flops.csv")
ROWS = read("megatron_bridge-published.csv")


def test_all_facts_are_there() -> None:
    resolved = Counter[str]()
    for row in CONFIGURATIONS:
        resolved[row["formula"]] += int(row["configurations"])
    assert resolved == {"megatron-bridge-0.1": 267, "megatron-bridge-0.5": 296}
    assert len(ROWS) == 281


@pytest.mark.parametrize("name", MODELS)
def test_a_shared_model_is_valid(name: str) -> None:
    assert not list(check_model(MODELS[name]))


@pytest.mark.parametrize("row", CONFIGURATIONS, ids=lambda row: f"{row['formula']}-{row['model']}-tp{row['tp']}")
def test_a_resolved_configuration_has_the_flops_of_nvidias_function(row: dict[str, str]) -> None:
    sizes = {name: int(row[name]) for name in ("layers", "hidden", "seq_len")}
    formula: FlopFormula = "megatron-bridge-0.1" if row["formula"] == "megatron-bridge-0.1" else "megatron-bridge-0.5"
    flops = flops_per_sequence(attrs.evolve(MODELS[row["model"]], **sizes), formula, tp=int(row["tp"]))
    assert flops == pytest.approx(float(row["flops_per_sequence"]), rel=1e-4)


def published_difference(row: dict[str, str]) -> tuple[float, float]:
    """Return by how many % the FLOPs per token of a row differ from the formula, and what rounding allows."""
    formula: FlopFormula = "megatron-bridge-0.1"
    if row["container"] >= FIRST_OF_NEW_FORMULA:
        formula = "megatron-bridge-0.5"
    model = attrs.evolve(MODELS[row["model"]], seq_len=int(row["seq_len"]))
    if row["note"] == "w/o MTP":
        model = attrs.evolve(model, mtp_depth=0)
    computed = flops_per_sequence(model, formula, tp=int(row["tp"])) / model.seq_len
    tokens, tflops = float(row["tokens_per_s_per_gpu"]), float(row["tflops_per_gpu"])
    difference = tflops * 1e12 / tokens / computed - 1
    return 100 * difference, 100 * (0.5 / tflops + tokens_rounding(row) / tokens)


def test_lora_has_the_flops_that_the_published_rows_imply() -> None:
    """Allow 0.3 %: the tokens/s of these rows follow from step times of 2 to 6 s, rounded to 0.01 s."""
    recipe = llmb.load_recipe("megatron_bridge/llama3-70b-lora@26.06")
    assert recipe.model is not None
    computed = flops_per_sequence(recipe.model, "megatron-bridge-lora")
    for row in read("megatron_bridge-published-lora.csv"):
        tokens, tflops = float(row["tokens_per_s_per_gpu"]), float(row["tflops_per_gpu"])
        assert computed == pytest.approx(tflops * 1e12 / tokens * recipe.model.seq_len, rel=3e-3), row


def tokens_rounding(row: dict[str, str]) -> float:
    """Return half a unit of tokens/s. Some tables print whole sequences/s of all GPUs, in tokens/s of one GPU."""
    sequence = int(row["seq_len"]) / int(row["gpus"])
    return sequence / 2 if (int(row["tokens_per_s_per_gpu"]) / sequence).is_integer() else 0.5


def test_every_published_row_has_the_flops_of_the_formula() -> None:
    contradictions = {}
    for row in ROWS:
        difference, rounding = published_difference(row)
        if abs(difference) > max(0.3, rounding):
            precision = f"{row['dtype']} {row['fp8_recipe']}".strip()
            key = (row["container"], row["model"], row["gpu_type"], precision, row["tflops_per_gpu"])
            contradictions[key] = round(difference, 1)
    assert contradictions == CONTRADICTIONS


def test_gpt_oss_counts_20_percent_more_since_version_0_5() -> None:
    model = MODELS["gpt-oss-120b"]
    before, after = (flops_per_sequence(model, name) for name in ("megatron-bridge-0.1", "megatron-bridge-0.5"))
    assert after / before == pytest.approx(1.201, abs=5e-4)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"gpt-oss-120b"}))
def test_no_other_published_model_changed_with_version_0_5(name: str) -> None:
    before, after = (flops_per_sequence(MODELS[name], each) for each in ("megatron-bridge-0.1", "megatron-bridge-0.5"))
    assert before == after
