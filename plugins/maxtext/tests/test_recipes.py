"""Recipes of the plugin: their content, and the consistency of their published metrics."""

from __future__ import annotations

from typing import Any

import pytest

from llmb import PluginRegistry, load_recipe
from llmb.judging.measure_point import measure_point
from llmb.recipes.accelerators import accelerators
from llmb.values.recipe import Point, Recipe
from llmb.values.types.check_types import encode

SCALES = (64, 128, 256, 512, 1024, 2048)


LLAMA2_70B = load_recipe("maxtext/llama2-70b")
TINY = load_recipe("maxtext/llama2-tiny")


def point_of(gpu_type: str, dtype: str, gpus: int, recipe: Recipe = LLAMA2_70B) -> Point:
    point = recipe.find(gpu_type, dtype, gpus)
    assert point is not None
    return point


def settings_of(point: Point) -> dict[str, Any]:
    settings: dict[str, Any] = encode(point.settings)
    return settings


def test_every_published_combination_is_a_point() -> None:
    expected = {("h100", "bf16"), ("h100", "fp8"), ("a100", "bf16")}
    found = {(point.gpu_type, point.dtype, point.gpus) for point in LLAMA2_70B.points}
    assert found == {(*pair, gpus) for pair in expected for gpus in SCALES}


@pytest.mark.parametrize("point", [*LLAMA2_70B.points, *TINY.points], ids=lambda p: f"{p.gpu_type}-{p.dtype}-{p.gpus}")
def test_every_point_runs_on_a_gpu_that_supports_its_dtype(point: Point) -> None:
    gpu = accelerators()[point.gpu_type]
    assert point.dtype in gpu.dtypes
    assert point.gpus % gpu.gpus_per_node == 0
    assert point.parallelism.gradient_accumulation(point.gpus) == 1


@pytest.mark.parametrize("point", LLAMA2_70B.points, ids=lambda p: f"{p.gpu_type}-{p.dtype}-{p.gpus}")
def test_the_batch_is_the_published_one(point: Point) -> None:
    assert point.parallelism.micro_batch_size == 2
    assert point.parallelism.global_batch_size == 2 * point.gpus


@pytest.mark.parametrize(
    ("gpus", "shards", "dcn_fsdp", "dcn_data"),
    [(64, 64, 8, 1), (128, 128, 16, 1), (256, 256, 32, 1), (512, 128, 16, 4), (1024, 128, 16, 8), (2048, 128, 16, 16)],
)
def test_the_mesh_is_the_published_one(gpus: int, shards: int, dcn_fsdp: int, dcn_data: int) -> None:
    fsdp = point_of("h100", "fp8", gpus).parallelism.fsdp
    assert (fsdp, fsdp // 8, gpus // fsdp) == (shards, dcn_fsdp, dcn_data)


@pytest.mark.parametrize("gpus", SCALES)
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_the_published_metrics_follow_from_the_published_step_times(dtype: str, gpus: int) -> None:
    point = point_of("h100", dtype, gpus)
    baseline = point.baseline
    assert baseline is not None
    metrics = measure_point(LLAMA2_70B, point, PluginRegistry(), baseline.step_time_s)
    assert metrics.tokens_per_s == pytest.approx(baseline.tokens_per_s, abs=0.01)
    assert metrics.mfu == pytest.approx(baseline.mfu, abs=0.001)
    assert metrics.days_per_1t_tokens == pytest.approx(baseline.days_per_1t_tokens, abs=0.01)
    assert baseline.release == "24.11"


def test_a100_has_no_baseline() -> None:
    assert all(point.baseline is None for point in LLAMA2_70B.points if point.gpu_type == "a100")


@pytest.mark.parametrize(
    ("dtype", "gpus", "divisors"),
    [
        ("bf16", 256, (4, 4, 256)),
        ("bf16", 512, (4, 4, 512)),
        ("fp8", 256, (8, 16, 1024)),
        ("fp8", 2048, (8, 16, 2048)),
    ],
)
def test_the_thresholds_are_8_gib_divided(dtype: str, gpus: int, divisors: tuple[int, ...]) -> None:
    flags = settings_of(point_of("h100", dtype, gpus))["xla_flags"]
    names = [f"xla_gpu_{kind}_combine_threshold_bytes" for kind in ("all_reduce", "all_gather", "reduce_scatter")]
    assert [flags[name] for name in names] == [8 * 2**30 // divisor for divisor in divisors]


def test_bf16_keeps_one_more_activation_than_fp8() -> None:
    bf16, fp8 = (settings_of(point_of("h100", dtype, 64))["config"] for dtype in ("bf16", "fp8"))
    assert bf16.keys() - fp8.keys() == {"mlpwo"}
    assert (bf16["quantization"], fp8["quantization"]) == ("", "fp8")


def test_only_the_profile_run_compiles_without_latency_hiding() -> None:
    settings = settings_of(point_of("h100", "bf16", 64))
    flag = "xla_gpu_enable_latency_hiding_scheduler"
    assert flag not in settings["xla_flags"]
    assert settings["profile"]["xla_flags"][flag] is False
    assert settings["performance"]["xla_flags"][flag] is True
    assert settings["profile"]["steps"] == 15


def test_the_tiny_recipe_runs_on_cpus_without_an_image() -> None:
    assert TINY.image is None
    assert (TINY.steps, TINY.window, TINY.flop_formula) == (50, (10, 49), "causal")
    assert [(point.gpu_type, point.dtype, point.gpus, point.proxy) for point in TINY.points] == [
        ("cpu", "fp32", 1, True),
        ("cpu", "fp32", 2, True),
    ]
    settings = settings_of(point_of("cpu", "fp32", 2, TINY))
    assert settings["command"] == ["python", "-m", "maxtext.trainers.pre_train.train"]
    assert (settings["lock"], settings["python"]) == ("cpu.txt", ">=3.12,<3.14")
