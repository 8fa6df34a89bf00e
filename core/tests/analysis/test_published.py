"""Every published row is reproduced from its step time, by the formula of its publisher.

`baselines.csv` holds what NVIDIA's READMEs of release 24.11 print, to the digits printed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import pytest

from llmb.analysis.flops import flops_per_sequence
from llmb.analysis.metrics import Metrics, compute_metrics
from llmb.recipes.accelerators import accelerators
from llmb.values.model import FlopFormula, Model

ROWS = list(csv.DictReader((Path(__file__).parent / "baselines.csv").read_text().splitlines()))

LLAMA3_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=128256, seq_len=8192)
LLAMA2_70B = Model(layers=80, hidden=8192, ffn=28672, heads=64, query_groups=8, vocab=32000, seq_len=4096)
NEMOTRON = Model(
    layers=96, hidden=18432, ffn=73728, heads=96, query_groups=8, vocab=256000, seq_len=4096, gated=False
)  # fmt: skip
GROK = Model(
    layers=64, hidden=6144, ffn=32768, heads=48, query_groups=8, vocab=128256, seq_len=8192, experts=8, top_k=2
)  # fmt: skip
GROK_PROXY_LAYERS = {8: 2, 16: 4, 32: 4, 64: 8, 128: 16, 256: 32}

MODELS: dict[str, tuple[Model, FlopFormula]] = {
    "llama3.1-70b": (LLAMA3_70B, "full"),
    "grok1-314b": (GROK, "causal"),
    "llama2-70b": (LLAMA2_70B, "full"),
    "nemotron4-340b": (NEMOTRON, "full-without-gqa"),
}

# Llama 3.1 70B BF16 at 2048 GPUs contradicts itself: its step time is 14.98 s, but its throughput, MFU and days are
# those of a step of 14.92 s (the step time of the column before).
CONTRADICTORY = ("llama3.1-70b", "bf16", "2048")
STEP_TIME_OF_ITS_FIGURES = 14.92


def model_of(row: dict[str, str]) -> tuple[Model, FlopFormula]:
    model, formula = MODELS[row["recipe"]]
    gpus = int(row["gpus"])
    layers = GROK_PROXY_LAYERS.get(gpus, model.layers) if model is GROK else model.layers
    return attrs.evolve(model, layers=layers, seq_len=int(row["seq_len"])), formula


def measured(row: dict[str, str], step_time_s: float) -> Metrics:
    model, formula = model_of(row)
    return compute_metrics(
        seq_len=model.seq_len,
        flops_per_sequence=flops_per_sequence(model, formula),
        mfu_from="step time",
        global_batch_size=int(row["global_batch_size"]),
        gpus=int(row["gpus"]),
        step_time_s=step_time_s,
        peak_flops=accelerators()[row["gpu"]].peak_flops[row["dtype"]],
        proxy=row["recipe"] == "grok1-314b" and int(row["gpus"]) in GROK_PROXY_LAYERS,
    )


def rounding(printed: str) -> float:
    """Return half a unit of the last printed digit."""
    return 0.501 * 10.0 ** -len(printed.partition(".")[2])


def name(row: dict[str, str]) -> str:
    return f"{row['recipe']}-{row['dtype']}-{row['gpus']}"


def is_contradictory(row: dict[str, str]) -> bool:
    return (row["recipe"], row["dtype"], row["gpus"]) == CONTRADICTORY


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_the_printed_figures_follow_from_the_printed_step_time(row: dict[str, str]) -> None:
    metrics = measured(row, STEP_TIME_OF_ITS_FIGURES if is_contradictory(row) else float(row["step_time_s"]))

    assert metrics.tokens_per_s == pytest.approx(float(row["tokens_per_s"]), abs=rounding(row["tokens_per_s"]))
    if row["mfu_percent"]:
        assert metrics.mfu is not None
        assert 100 * metrics.mfu == pytest.approx(float(row["mfu_percent"]), abs=0.1)
    if row["days_per_1t_tokens"]:
        days = row["days_per_1t_tokens"]
        assert metrics.days_per_1t_tokens == pytest.approx(float(days), abs=rounding(days))
    else:
        assert metrics.days_per_1t_tokens is None  # a proxy


def test_one_column_does_not_follow_from_its_own_step_time() -> None:
    (row,) = filter(is_contradictory, ROWS)
    metrics = measured(row, float(row["step_time_s"]))
    assert metrics.tokens_per_s is not None
    assert metrics.mfu is not None
    assert metrics.tokens_per_s < float(row["tokens_per_s"]) - 1000
    assert 100 * metrics.mfu < float(row["mfu_percent"]) - 0.1


def test_all_rows_are_there() -> None:
    assert len(ROWS) == 52
