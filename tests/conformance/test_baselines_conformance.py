"""Baselines of release 26.06: every published row that coincides with a point is stored.

The rows are those of Megatron-Bridge's performance tables at commit 4ab94dfa: of pre-training in
`megatron_bridge-published.csv`, and of LoRA in `megatron_bridge-published-lora.csv`.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import llmb

HERE = Path(__file__).parent
LINE = "@26.06"
CONTAINERS = ("26.02", "26.08")
ROWS = [
    row
    for name in ("megatron_bridge-published.csv", "megatron_bridge-published-lora.csv")
    for row in csv.DictReader((HERE / name).read_text().splitlines())
    if CONTAINERS[0] <= row["container"] <= f"{CONTAINERS[1]}.99"
]
NAMES = {
    "llama3-8b": "llama3.1-8b",
    "llama3-70b": "llama3.1-70b",
    "nemotron-3-nano": "nemotron3-nano-30b",
    "nemotron-3-super": "nemotron3-super-120b",
}
"""Recipes whose names differ from the names of their models in the table."""
RECIPES = [each for each in llmb.recipe_addresses() if each.endswith(LINE)]
DEGREES = ("tp", "pp", "cp", "ep", "fsdp", "global_batch_size", "micro_batch_size")


def rows_of(recipe: llmb.Recipe) -> list[dict[str, str]]:
    """Return the published rows of a recipe's model."""
    name = recipe.address.partition("/")[2].partition("@")[0]
    return [row for row in ROWS if NAMES.get(row["model"], row["model"]) == name]


def coincides(row: dict[str, str], point: llmb.Point) -> bool:
    """Check whether a row was measured with the configuration of a point."""
    parallelism = point.parallelism
    degrees = {name: str(getattr(parallelism, name)) for name in DEGREES} | {"vp": str(parallelism.vp or 1)}
    key = (point.gpu_type, point.dtype, str(point.gpus), str(point.seq_len))
    same_key = key == (row["gpu_type"], row["dtype"], row["gpus"], row["seq_len"])
    same_fp8 = point.dtype != "fp8" or row["fp8_recipe"] == point.settings.get("fp8_recipe")
    return not point.proxy and same_key and same_fp8 and all(row[name] == degrees[name] for name in degrees)


@pytest.mark.parametrize("address", RECIPES)
def test_every_row_that_coincides_with_a_point_is_stored(address: str) -> None:
    recipe = llmb.load_recipe(address)
    expected = {
        (point.gpu_type, point.dtype, point.variant, point.gpus, row["container"], float(row["tflops_per_gpu"]))
        for point in recipe.points
        for row in rows_of(recipe)
        if coincides(row, point)
    }
    stored = {
        (point.gpu_type, point.dtype, point.variant, point.gpus, each.release, each.tflops_per_gpu)
        for point in recipe.points
        for each in (*filter(None, [point.baseline]), *point.other_baselines)
    }
    assert stored == expected


@pytest.mark.parametrize("address", RECIPES)
def test_every_stored_row_names_its_source(address: str) -> None:
    for point in llmb.load_recipe(address).points:
        for each in (*filter(None, [point.baseline]), *point.other_baselines):
            assert each.source.startswith("Megatron-Bridge, docs/performance-summary")
            assert f"container {each.release}" in each.source
