"""Recipes of the plugin: the published tables, and the metrics that follow from them."""

from __future__ import annotations

from typing import Any

import pytest

import llmb
from llmb import load_recipe
from llmb.recipes.accelerators import accelerators
from llmb.values.recipe import Point
from llmb.values.types.check_types import encode

SIZES = ("8b", "70b", "405b")
GPUS: dict[str, dict[str, tuple[int, ...]]] = {
    "8b": dict.fromkeys(("gb300", "gb200", "b200", "h100"), (8, 16, 32, 64, 128)),
    "70b": {"gb300": (64, 128, 256, 512, 1024), "gb200": (64, 128, 256, 512)}
    | dict.fromkeys(("b200", "h100"), (64, 128, 256, 512, 1024)),
    "405b": {"gb300": (128, 256, 512, 1024), "gb200": (128, 256, 512), "b200": (128, 256, 512, 1024), "h100": (1024,)},
}

# README of 25.10, table for FP8, except if the code differs: FSDP, TP, PP, CP, VP, MBS, GA, CUDA graphs, recomputed and
# offloaded layers.
README = {
    ("gb300", "405b"): (True, 2, 1, 1, None, 1, 1, False, 0, 80),
    ("gb300", "70b"): (True, 1, 1, 1, None, 2, 1, False, 0, 40),
    ("gb300", "8b"): (False, 1, 1, 1, None, 2, 8, True, 0, 0),
    ("gb200", "405b"): (True, 2, 1, 1, None, 1, 1, False, 0, 80),
    ("gb200", "70b"): (True, 1, 1, 1, None, 2, 1, False, 0, 40),
    ("gb200", "8b"): (False, 1, 1, 1, None, 2, 8, True, 0, 0),
    ("b200", "405b"): (False, 4, 8, 2, 8, 1, 32, False, 0, 0),
    ("b200", "70b"): (True, 1, 1, 1, None, 1, 2, False, 5, 0),
    ("b200", "8b"): (False, 1, 1, 1, None, 2, 8, True, 0, 0),
    ("h100", "405b"): (False, 8, 8, 2, 8, 1, 64, False, 0, 0),
    ("h100", "70b"): (False, 4, 8, 1, 5, 1, 64, False, 0, 0),  # README: 5 recomputed layers; the code has none
    ("h100", "8b"): (True, 1, 1, 1, None, 1, 16, False, 0, 0),  # README: CUDA graphs; the code has none
}
BATCH = {"8b": lambda gpus: 16 * gpus, "70b": lambda gpus: 2 * gpus, "405b": lambda gpus: gpus // 2}


SEED = {size: f"megatron_bridge/llama3.1-{size}@25.10" for size in SIZES}
FIRST = "megatron_bridge/llama3.1-405b@25.10.00"
NEXT = {size: f"megatron_bridge/llama3.1-{size}@25.12" for size in SIZES}


def point_of(address: str, gpu_type: str, dtype: str, gpus: int) -> Point:
    point = load_recipe(address).find(gpu_type, dtype, gpus)
    assert point is not None
    return point


def row(point: Point) -> tuple[Any, ...]:
    parallelism = point.parallelism
    dp = parallelism.data_parallel(point.gpus)
    assert parallelism.fsdp in (1, dp * parallelism.cp)
    return (
        *(parallelism.fsdp > 1, parallelism.tp, parallelism.pp, parallelism.cp, parallelism.vp),
        *(parallelism.micro_batch_size, parallelism.gradient_accumulation(point.gpus)),
        *(point.cuda_graphs, point.recompute_layers, point.offload_layers),
    )


@pytest.mark.parametrize(("gpu_type", "size"), README)
def test_fp8_equals_the_published_table_at_every_number_of_gpus(gpu_type: str, size: str) -> None:
    for gpus in GPUS[size][gpu_type]:
        point = point_of(SEED[size], gpu_type, "fp8", gpus)
        assert row(point) == README[gpu_type, size]
        assert point.parallelism.global_batch_size == BATCH[size](gpus)
        assert (point.model.seq_len, point.model.layers) == (8192, {"8b": 32, "70b": 80, "405b": 126}[size])


@pytest.mark.parametrize("size", SIZES)
def test_the_points_have_exactly_the_published_numbers_of_gpus(size: str) -> None:
    found = {(point.gpu_type, point.dtype, point.gpus) for point in load_recipe(SEED[size]).points}
    assert found == {(gpu, dtype, each) for gpu in GPUS[size] for dtype in ("fp8", "bf16") for each in GPUS[size][gpu]}


@pytest.mark.parametrize("address", [*SEED.values(), *NEXT.values()])
def test_every_point_runs_on_a_gpu_that_supports_its_dtype(address: str) -> None:
    recipe = load_recipe(address)
    for point in recipe.points:
        gpu = accelerators()[point.gpu_type]
        assert point.dtype in gpu.dtypes
        assert point.gpus % gpu.gpus_per_node == 0
    assert {point.gpu_type for point in recipe.points if point.variant == "mxfp8"} == {"gb300", "gb200", "b200"}
    assert {(point.dtype, point.variant) for point in recipe.points} - {("nvfp4", None)} == {
        ("bf16", None), ("fp8", "cs"), ("fp8", "mxfp8"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "exact"),
    [("", "26.06.01"), ("@26.06", "26.06.01"), ("@25.12", "25.12.02"), ("@25.12.01", "25.12.01"),
     ("@25.12.00", "25.12.00"), ("@25.10", "25.10.02"), ("@25.10.01", "25.10.01"), ("@25.10.00", "25.10.00")],
)  # fmt: skip
def test_an_address_names_a_release_or_the_last_fix_of_one(written: str, exact: str) -> None:
    recipe = load_recipe(f"megatron_bridge/llama3.1-70b{written}")
    assert (recipe.address, recipe.release) == (f"megatron_bridge/llama3.1-70b@{exact}", exact)


@pytest.mark.parametrize("size", SIZES)
def test_a_release_is_data(size: str) -> None:
    seed, later = load_recipe(SEED[size]), load_recipe(NEXT[size])
    releases = [
        (recipe.release, recipe.image, recipe.points[0].settings["repository"]["commit"]) for recipe in (seed, later)
    ]
    assert releases == [
        ("25.10.02", llmb.Image(ref="nvcr.io/nvidia/nemo:25.09.00"), "d7dfa7642caf7c8e70547394895f0fb7777b5173"),
        ("25.12.02", llmb.Image(ref="nvcr.io/nvidia/nemo:25.11.01"), "4df8c97392bc9c3906739e658f203f6810008821"),
    ]
    assert "nvfp4" in {point.dtype for point in later.points}
    assert "nvfp4" not in {point.dtype for point in seed.points}


@pytest.mark.parametrize(
    ("size", "gpu_type", "dtype", "gpus", "expected"),
    [
        ("70b", "gb300", "nvfp4", 64, (False, 1, 4, 1, 5, 1, 8, False, 0, 0)),
        ("70b", "gb200", "nvfp4", 512, (False, 2, 4, 1, 5, 1, 16, False, 0, 0)),
        ("70b", "b200", "fp8", 64, (True, 1, 1, 1, None, 1, 2, False, 0, 5)),
        ("405b", "gb200", "fp8", 128, (True, 2, 1, 1, None, 1, 1, False, 0, 92)),
        ("8b", "gb300", "nvfp4", 8, (False, 1, 1, 1, None, 4, 4, True, 0, 0)),
        ("8b", "h100", "bf16", 8, (False, 1, 1, 2, None, 1, 32, False, 0, 0)),
    ],
)
def test_the_later_release_has_its_own_points(
    size: str, gpu_type: str, dtype: str, gpus: int, expected: tuple[Any, ...]
) -> None:
    assert row(point_of(NEXT[size], gpu_type, dtype, gpus)) == expected


# Environment of a point: recipe, GPU type, dtype, variables that are set, variables that are not.
ENVIRONMENT = [
    (SEED["70b"], "h100", "fp8", {"NVTE_FWD_LAYERNORM_SM_MARGIN": "20", "CUDA_DEVICE_MAX_CONNECTIONS": "1",
                                  "NCCL_P2P_NET_CHUNKSIZE": "2097152", "NVTE_NORM_FWD_USE_CUDNN": "1"}, ()),
    (SEED["405b"], "h100", "fp8", {"TORCH_NCCL_HIGH_PRIORITY": "1"}, ("NVTE_NORM_FWD_USE_CUDNN",)),
    (SEED["405b"], "gb200", "fp8", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                                    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
                                    "NVTE_BWD_LAYERNORM_SM_MARGIN": "16"},
     ("NCCL_P2P_NET_CHUNKSIZE", "NCCL_NET_GDR_LEVEL")),
    (FIRST, "gb300", "bf16", {"NCCL_NET_GDR_C2C": "1", "NCCL_NET_GDR_LEVEL": "PHB"}, ("PYTORCH_CUDA_ALLOC_CONF",)),
    (FIRST, "b200", "bf16", {}, ("NCCL_NET_GDR_LEVEL",)),
    (SEED["8b"], "h100", "fp8", {"NCCL_NVLS_ENABLE": "1", "NCCL_CTA_POLICY": "1"}, ("CUDA_DEVICE_MAX_CONNECTIONS",)),
    (SEED["8b"], "b200", "bf16", {"NCCL_NVLS_ENABLE": "0", "NVTE_FUSED_ATTN": "1"}, ("NCCL_NET_GDR_LEVEL",)),
    (NEXT["8b"], "h100", "fp8", {"NCCL_NVLS_ENABLE": "0", "NCCL_CTA_POLICY": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "8",
                                 "NVTE_NORM_FWD_USE_CUDNN": "1"}, ("NVTE_FUSED_ATTN",)),
    (NEXT["405b"], "gb200", "fp8", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, ("NCCL_NET_GDR_LEVEL",)),
    (NEXT["405b"], "gb300", "fp8", {"NVTE_NORM_FWD_USE_CUDNN": "1"}, ("PYTORCH_CUDA_ALLOC_CONF",)),
    (NEXT["70b"], "b200", "nvfp4", {"TORCH_NCCL_HIGH_PRIORITY": "1"}, ("NVTE_NORM_FWD_USE_CUDNN",)),
]  # fmt: skip


@pytest.mark.parametrize(("address", "gpu_type", "dtype", "present", "absent"), ENVIRONMENT)
def test_the_environment_depends_on_release_gpu_size_and_dtype(
    address: str, gpu_type: str, dtype: str, present: dict[str, str], absent: tuple[str, ...]
) -> None:
    for point in load_recipe(address).points:
        if (point.gpu_type, point.dtype, point.variant) == (gpu_type, dtype, "cs" if dtype == "fp8" else None):
            env: dict[str, str] = encode(point.settings["env"])
            assert {name: env.get(name) for name in present} == present
            assert not set(absent) & set(env)


def test_the_published_example_is_reproduced_and_its_two_mfu_differ() -> None:
    found = llmb.metrics(
        "megatron_bridge/llama3.1-405b@25.10",
        gpu_type="gb200", dtype="fp8", gpus=128, step_time_s=5.74147, tflops_per_gpu=1636.80,
    )  # fmt: skip
    assert found.mfu == found.mfu_logged == pytest.approx(0.3340, abs=5e-5)
    assert found.tokens_per_s is not None
    assert 91_300 < found.tokens_per_s < 91_400
    assert found.days_per_1t_tokens == pytest.approx(126.7, abs=0.05)
    assert found.mfu_computed is not None
    assert found.mfu_computed / found.mfu_logged - 1 > 0.03


@pytest.mark.parametrize(("size", "flops"), [("8b", 4.2165e14), ("70b", 3.68e15), ("405b", 2.068e16)])
def test_flops_equal_those_of_the_framework(size: str, flops: float) -> None:
    address, gpus = f"megatron_bridge/llama3.1-{size}@25.10", 1024 if size == "405b" else 64
    found = llmb.metrics(address, gpu_type="h100", dtype="fp8", gpus=gpus, step_time_s=10.0)
    assert found.flops_per_sequence == pytest.approx(flops, rel=1e-3)
    assert found.peak_flops == 1979e12


# Published results, in TFLOP/s per GPU: release, size, GPU type, GPUs, current scaling, MXFP8.
# Source: docs/performance-summary-archive.md of Megatron-Bridge at 4ab94dfa, containers 25.11 and 25.09
RESULTS = [
    ("25.12", "8b", "gb200", 8, 1622, 1533),
    ("25.12", "8b", "b200", 8, 1576, 1519),
    ("25.12", "405b", "b200", 128, 1667, 1576),
    ("25.12", "70b", "h100", 64, 719, None),
    ("25.12", "405b", "h100", 1024, 737, None),
    ("25.10", "8b", "gb200", 8, 1614, 1540),
    ("25.10", "70b", "gb200", 64, 1791, None),
    ("25.10", "405b", "gb200", 128, 1840, 1458),
    ("25.10", "8b", "b200", 8, 1544, 1513),
    ("25.10", "405b", "b200", 128, 1676, 1569),
    ("25.10", "8b", "h100", 8, 725, None),
    ("25.10", "70b", "h100", 64, 727, None),
    ("25.10", "405b", "h100", 1024, 763, None),
]


@pytest.mark.parametrize(("release", "size", "gpu_type", "gpus", "cs", "mxfp8"), RESULTS)
def test_published_results_are_baselines(
    release: str, size: str, gpu_type: str, gpus: int, cs: float, mxfp8: float | None
) -> None:
    recipe = load_recipe(f"megatron_bridge/llama3.1-{size}@{release}")
    for variant, tflops in (("cs", cs), ("mxfp8", mxfp8)):
        if tflops is None:
            continue
        point = recipe.find(gpu_type, "fp8", gpus, variant=variant)
        assert point is not None
        assert point.baseline is not None
        assert point.baseline.tflops_per_gpu == tflops
        found = llmb.metrics(
            recipe.address, gpu_type=gpu_type, dtype="fp8", gpus=gpus, variant=variant, tflops_per_gpu=tflops
        )
        assert found.step_time_s == pytest.approx(point.baseline.step_time_s)


def test_no_result_is_missing() -> None:
    assert sum(each is not None for row in RESULTS for each in row[-2:]) == 20
    points = [point for address in (*SEED.values(), *NEXT.values()) for point in load_recipe(address).points]
    assert sum(point.baseline is not None for point in points) == 20
