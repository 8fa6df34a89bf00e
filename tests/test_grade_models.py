"""``llmb grade`` of a log of each kind of model: dense, experts, windows, MLA, hybrids.

The TFLOP/s of the logs follow from FLOPs that NVIDIA's own function returns for these configurations.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from parts.command_line import Llmb, command_line

FLOPS = list(
    csv.DictReader((Path(__file__).parent / "conformance" / "megatron_bridge-flops.csv").read_text().splitlines())
)
KINDS = [
    ("llama3.1-8b", "llama3-8b", ("gb200", "fp8", 8), 128),
    ("llama3.1-405b", "llama3.1-405b", ("gb200", "fp8", 256), 1536),
    ("qwen3-30b-a3b", "qwen3-30b-a3b", ("gb200", "bf16", 8), 512),
    ("gpt-oss-120b", "gpt-oss-120b", ("gb200", "bf16", 64), 1280),
    ("deepseek-v3", "deepseek-v3", ("h100", "bf16", 1024), 16384),
    ("kimi-k2", "kimi-k2", ("gb300", "fp8", 256), 4096),
    ("nemotron-h-56b", "nemotron-h-56b", ("gb200", "fp8", 64), 192),
    ("nemotron3-nano-30b", "nemotron-3-nano", ("gb300", "fp8", 8), 512),
    ("nemotron3-super-120b", "nemotron-3-super", ("gb300", "fp8", 64), 512),
]
"""Recipe, model in the file of FLOPs, published point, and its global batch size."""

STEP_S = 12.0

LORA_FLOPS = 735e12 / 2643 * 4096
"""FLOPs of a sequence of LoRA that the published 735 TFLOP/s and 2,643 tokens/s per GPU imply."""


@pytest.fixture
def llmb(capsys: pytest.CaptureFixture[str]) -> Llmb:
    return command_line(capsys)


def flops_of(model: str, tp: int) -> float:
    """Return the FLOPs of a sequence of the complete model, as NVIDIA's function counted them up to version 0.4."""
    rows = [
        row for row in FLOPS if (row["model"], row["formula"], int(row["tp"])) == (model, "megatron-bridge-0.1", tp)
    ]
    return max(float(row["flops_per_sequence"]) for row in rows)  # proxies have less


def write_log(path: Path, tflops: float, batch: int, step_s: float = STEP_S) -> Path:
    lines = [
        f" [2026-07-30 10:00:00] iteration {step:8}/      50 | consumed samples: {step * batch:12} | elapsed time per "
        f"iteration (ms): {1000 * step_s:.1f} | throughput per GPU (TFLOP/s/GPU): {tflops:.1f} | "
        f"learning rate: 1.0E-04 | global batch size: {batch:5} | lm loss: {12 - step / 50:.6E} | loss scale: 1.0 | "
        "grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        for step in range(1, 51)
    ]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(("recipe", "model", "point", "batch"), KINDS, ids=[kind[0] for kind in KINDS])
def test_a_log_is_judged_with_the_flops_of_its_model(
    llmb: Llmb, tmp_path: Path, recipe: str, model: str, point: tuple[str, str, int], batch: int
) -> None:
    gpu_type, dtype, gpus = point
    tp = {"llama3.1-405b": 4, "deepseek-v3": 2, "nemotron-h-56b": 2}.get(recipe, 1)
    tflops = flops_of(model, tp) * batch / (STEP_S * gpus * 1e12)
    log = write_log(tmp_path / "train.log", tflops, batch)
    options = ("--recipe", f"megatron_bridge/{recipe}@26.06", "--gpu-type", gpu_type, "--dtype", dtype)
    grade = llmb("grade", log, *options, "--gpus", str(gpus), "--json").json

    metrics = grade["metrics"]
    assert (grade["status"], metrics["step_time_s"]) == ("complete", STEP_S)
    assert metrics["flops_per_sequence"] == pytest.approx(flops_of(model, tp), rel=1e-4)
    assert metrics["model_tflops_per_gpu"] == pytest.approx(tflops, rel=1e-3)
    assert metrics["mfu"] == metrics["mfu_logged"] == pytest.approx(metrics["mfu_computed"], rel=1e-2)
    assert not [note for note in grade["notes"] if "FLOP" in note or "batch" in note]
    assert "batch" not in grade["reason"]
    assert (grade["verdict"] is None) == (metrics["baseline"] is None)


def test_a_log_of_lora_is_judged_with_the_flops_that_the_published_result_implies(llmb: Llmb, tmp_path: Path) -> None:
    """Expect the published step time: 6.2 s, from 2,643 tokens/s per GPU."""
    step_s = 32 * 4096 / (8 * 2643)
    log = write_log(tmp_path / "train.log", LORA_FLOPS * 32 / (step_s * 8 * 1e12), 32, step_s)
    options = (
        "--recipe",
        "megatron_bridge/llama3-70b-lora@26.06",
        "--gpu-type",
        "h100",
        "--dtype",
        "fp8",
        "--gpus",
        "8",
    )
    grade = llmb("grade", log, *options, "--json").json
    metrics = grade["metrics"]
    assert metrics["flops_per_sequence"] == pytest.approx(LORA_FLOPS, rel=3e-3)
    assert metrics["mfu_logged"] == pytest.approx(735e12 / 1979e12, rel=1e-3)
    assert (grade["verdict"], grade["notes"]) == ("pass", [])
