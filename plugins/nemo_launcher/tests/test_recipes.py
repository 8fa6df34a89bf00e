"""Recipes of the plugin: the published values, and the consistency of the published metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llmb import Image, Run, load_recipe
from llmb import metrics as metrics_of
from llmb.recipes.accelerators import accelerators
from llmb_nemo_launcher.plugin import NeMoLauncher

NAMES = ("llama3.1-8b", "llama3.1-70b", "llama3.1-405b", "grok1-314b", "nemotron4-340b")
RECIPES = {name: load_recipe(f"nemo_launcher/{name}") for name in NAMES}
DTYPES = ("bf16", "fp8")

# recipe, GPUs: layers, sequence; tp pp vp cp ep, global batch, gradient accumulation, proxy (READMEs, release 24.11)
PUBLISHED: dict[tuple[str, int], tuple[Any, ...]] = {
    ("llama3.1-8b", 8): (32, 8192, 1, 1, None, 2, 1, 128, 32, False),
    ("llama3.1-8b", 16): (32, 8192, 1, 1, None, 2, 1, 256, 32, False),
    ("llama3.1-8b", 32): (32, 8192, 1, 1, None, 2, 1, 512, 32, False),
    ("llama3.1-8b", 64): (32, 8192, 1, 1, None, 2, 1, 1024, 32, False),
    ("llama3.1-8b", 128): (32, 8192, 1, 1, None, 2, 1, 2048, 32, False),
    ("llama3.1-70b", 64): (80, 8192, 4, 4, 5, 2, 1, 128, 64, False),
    ("llama3.1-70b", 128): (80, 8192, 4, 4, 5, 2, 1, 256, 64, False),
    ("llama3.1-70b", 256): (80, 8192, 4, 4, 5, 2, 1, 512, 64, False),
    ("llama3.1-70b", 512): (80, 8192, 4, 4, 5, 2, 1, 1024, 64, False),
    ("llama3.1-70b", 1024): (80, 8192, 4, 4, 5, 2, 1, 2048, 64, False),
    ("llama3.1-70b", 2048): (80, 8192, 4, 4, 5, 2, 1, 4096, 64, False),
    ("llama3.1-405b", 32): (7, 8192, 8, 1, None, 2, 1, 126, 63, True),
    ("llama3.1-405b", 96): (21, 8192, 8, 3, 7, 2, 1, 126, 63, True),
    ("llama3.1-405b", 192): (42, 8192, 8, 3, 7, 2, 1, 252, 63, True),
    ("llama3.1-405b", 576): (126, 8192, 8, 9, 7, 2, 1, 252, 63, False),
    ("llama3.1-405b", 1152): (126, 8192, 8, 9, 7, 2, 1, 504, 63, False),
    ("llama3.1-405b", 2304): (126, 8192, 8, 9, 7, 2, 1, 1008, 63, False),
    ("grok1-314b", 8): (2, 4096, 4, 1, None, 1, 2, 1024, 512, True),
    ("grok1-314b", 16): (4, 4096, 4, 1, None, 1, 4, 1024, 256, True),
    ("grok1-314b", 32): (4, 4096, 4, 1, None, 1, 8, 1024, 128, True),
    ("grok1-314b", 64): (8, 8192, 4, 1, None, 2, 8, 1024, 128, True),
    ("grok1-314b", 128): (16, 8192, 4, 2, 8, 2, 8, 1024, 128, True),
    ("grok1-314b", 256): (32, 8192, 4, 4, 8, 2, 8, 1024, 128, True),
    ("grok1-314b", 512): (64, 8192, 4, 8, 8, 2, 8, 1024, 128, False),
    ("grok1-314b", 1024): (64, 8192, 4, 8, 8, 2, 8, 2048, 128, False),
    ("grok1-314b", 2048): (64, 8192, 4, 8, 8, 2, 8, 4096, 128, False),
    ("nemotron4-340b", 128): (96, 4096, 8, 8, 12, 1, 1, 32, 16, False),
    ("nemotron4-340b", 256): (96, 4096, 8, 8, 12, 1, 1, 64, 16, False),
    ("nemotron4-340b", 512): (96, 4096, 8, 8, 12, 1, 1, 128, 16, False),
    ("nemotron4-340b", 1024): (96, 4096, 8, 8, 12, 1, 1, 256, 16, False),
    ("nemotron4-340b", 2048): (96, 4096, 8, 8, 12, 1, 1, 512, 16, False),
}


def gpus_of(name: str) -> list[int]:
    return [gpus for recipe, gpus in PUBLISHED if recipe == name]


@pytest.mark.parametrize("name", NAMES)
def test_every_published_combination_is_a_point_and_nothing_else(name: str) -> None:
    expected = {("h100", dtype, gpus) for dtype in DTYPES for gpus in gpus_of(name)}
    if name == "nemotron4-340b":
        expected |= {("a100", "bf16", gpus) for gpus in gpus_of(name)}

    assert {(point.gpu_type, point.dtype, point.gpus) for point in RECIPES[name].points} == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_point_has_the_published_parallelism(name: str) -> None:
    for point in RECIPES[name].points:
        model, division = point.model, point.parallelism
        found = (
            *(model.layers, model.seq_len, division.tp, division.pp, division.vp, division.cp, division.ep),
            *(division.global_batch_size, division.gradient_accumulation(point.gpus), point.proxy),
        )
        assert found == PUBLISHED[name, point.gpus], point
        assert division.micro_batch_size == 1
        assert point.dtype in accelerators()[point.gpu_type].dtypes


@pytest.mark.parametrize("name", NAMES)
def test_every_h100_point_has_its_baseline_and_proxies_have_no_days(name: str) -> None:
    for point in RECIPES[name].points:
        if point.gpu_type == "a100":
            assert point.baseline is None
            continue
        assert point.baseline is not None
        assert point.baseline.release == "24.11"
        assert point.baseline.source.startswith("NVIDIA/dgxc-benchmarking v24.11.1, ")
        assert (point.baseline.days_per_1t_tokens is None) is point.proxy


@pytest.mark.parametrize("name", ["llama3.1-8b", "llama3.1-405b"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_published_metrics_are_consistent(name: str, dtype: str) -> None:
    """The FP8 proxies of 405B publish tokens/s of a step time with more digits than the published step time."""
    for gpus in gpus_of(name):
        point = RECIPES[name].find("h100", dtype, gpus)
        assert point is not None
        published = point.baseline
        assert published is not None
        found = metrics_of(
            f"nemo_launcher/{name}", gpu_type="h100", dtype=dtype, gpus=gpus, step_time_s=published.step_time_s
        )
        assert found.mfu == pytest.approx(published.mfu, abs=0.001)
        assert found.tokens_per_s == pytest.approx(published.tokens_per_s, rel=0.001 if dtype == "fp8" else 1e-5)
        if not point.proxy:
            assert found.days_per_1t_tokens == pytest.approx(published.days_per_1t_tokens, abs=0.0051)


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("llama3.1-8b", 4.744e14),
        ("llama3.1-70b", 3.944e15),
        ("llama3.1-405b", 2.1715e16),
        ("grok1-314b", 4.274e15),
        ("nemotron4-340b", 1.01e16),
    ],
)
def test_the_flops_equal_those_of_the_published_formula(name: str, flops: float) -> None:
    largest = max(gpus_of(name))
    found = metrics_of(f"nemo_launcher/{name}", gpu_type="h100", dtype="bf16", gpus=largest, step_time_s=10)

    assert found.flops_per_sequence == pytest.approx(flops, rel=1e-3)


def test_the_vocabulary_of_the_flops_can_differ_from_that_of_the_model() -> None:
    model = RECIPES["llama3.1-405b"].model

    assert (model.vocab, model.flops_vocab) == (50257, 128256)


@pytest.mark.parametrize(
    ("name", "buffer"), [("llama3.1-8b", None), ("llama3.1-70b", None), ("llama3.1-405b", 5), ("grok1-314b", 5)]
)
def test_only_two_recipes_average_printed_step_times_over_five_steps(name: str, buffer: int | None) -> None:
    assert {point.settings.get("step_timing_buffer") for point in RECIPES[name].points} == {buffer}


def test_the_images_are_the_published_ones() -> None:
    digest = "sha256:9c876dce0621f954d1733063e2af642682b188d757fb280cc55755fb8e194400"

    assert RECIPES["grok1-314b"].image == Image(ref="nvcr.io/nvidia/nemo:dev", digest=digest)
    assert {RECIPES[name].image for name in NAMES if name != "grok1-314b"} == {Image(ref="nvcr.io/nvidia/nemo:24.09")}


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_all_recipes_share(name: str) -> None:
    recipe = RECIPES[name]

    assert (recipe.release, recipe.window, recipe.mfu_from, recipe.steps) == ("24.11", "last", "step time", 50)
    assert (recipe.time_limit_s, recipe.memory_gb, dict(recipe.profile_steps)) == (3600, 80, {"nccl-trace": 10})


@pytest.mark.parametrize(
    ("name", "gpus", "overrides", "optional"),
    [
        ("llama3.1-8b", 8, (), True),
        ("llama3.1-8b", 8, ("parallelism.tp=2",), False),
        ("llama3.1-70b", 64, (), False),
        ("grok1-314b", 8, (), False),
        ("nemotron4-340b", 128, (), False),
    ],
)
def test_overlapped_tensor_parallelism_needs_mpi(
    load_run: Callable[..., Run[Any]], name: str, gpus: int, overrides: tuple[str, ...], optional: bool
) -> None:
    job = NeMoLauncher().build_job(load_run(name, "bf16", gpus, *overrides))

    assert (job.mpi, job.mpi_optional) == ("pmix", optional)
