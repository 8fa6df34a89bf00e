"""Configurations of release 26.06 that NVIDIA's scripts accept and the collection does not list: FP8, NVFP4 and v1.

tools/resolve_release.py resolved them, from a copy of the collection whose metadata.yaml lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from conformance.condense import named_arguments
from conformance.test_megatron_bridge_26_conformance import OF_LORA, RECIPES, stated_config
from parts.conformance import differences, facts, job_env, plan_runs, unexplained
from parts.conformance_of_bridge import PATH, REASONS

import llmb

ROWS: list[Mapping[str, Any]] = facts("megatron_bridge-26.06-unlisted")
VARIANTS = {"fp8_cs": "cs", "fp8_mx": "mxfp8"}
OF_CONFIG = ("train.manual_gc", "train.manual_gc_interval")
"""Arguments that the plugin of the publisher's launcher adds."""

NAMES = {
    "llama3_8b": "llama3.1-8b",
    "llama3_70b": "llama3.1-70b",
    "llama3_70b lora": "llama3-70b-lora",
    "llama31_405b": "llama3.1-405b",
    "gpt_oss_120b": "gpt-oss-120b",
    "qwen3_30b_a3b": "qwen3-30b-a3b",
    "qwen3_235b_a22b": "qwen3-235b-a22b",
    "nemotron_3_nano": "nemotron3-nano-30b",
    "nemotron_3_super": "nemotron3-super-120b",
}
"""The recipes, by the names of the models in the publisher's scripts, and the task unless it is pre-training."""


def recipe_of(row: Mapping[str, Any]) -> str:
    names = (row["arguments"]["--model_recipe_name"], row["arguments"].get("--task", "pretrain"))
    return NAMES[" ".join(name for name in names if name != "pretrain")]


def variant_of(row: Mapping[str, Any]) -> str | None:
    """Return the variant as a spec names it. For Llama 3.1 8B, v1 and v2 are the same configuration."""
    is_8b = row["arguments"]["--model_recipe_name"] == "llama3_8b"
    version = None if is_8b else row["arguments"].get("--config_variant")
    return "-".join(filter(None, (VARIANTS.get(row["arguments"]["--compute_dtype"]), version))) or None


def name_of(row: Mapping[str, Any]) -> str:
    return "-".join(filter(None, (recipe_of(row), row["gpu_type"], row["dtype"], variant_of(row))))


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_configuration_that_is_not_listed_resolves_as_the_scripts_resolve_it(row: Mapping[str, Any]) -> None:
    address = f"megatron_bridge/{recipe_of(row)}@26.06"
    variant = variant_of(row)
    workload = {"variant": variant} if variant else {}
    found = {}
    for plan in plan_runs(address, row["gpu_type"], row["dtype"], row["gpus"], workload=workload):
        batch = row["global_batch_size"][row["gpus"].index(plan.run.gpus)]
        config, stated = {**row["config"], "train.global_batch_size": batch}, stated_config(plan)
        command = plan.job.phases[-1].command
        start = next(index for index, word in enumerate(command) if word.endswith("run_script.py"))
        ours = named_arguments(command[start + 1 :])
        assert [ours.pop(name) for name in OF_CONFIG] == ["true", "100"]
        found[plan.run.name] = {
            **differences("config", {key: config.get(key) for key in stated}, stated),
            **differences("env", row["env"], job_env(plan)),
            **differences("argument", {**row["arguments"], "--num_gpus": str(plan.run.gpus)}, ours),
        }
    assert len(found) == len(row["gpus"])
    of_task = OF_LORA if row["arguments"].get("--task") == "lora" else {}
    assert unexplained(found, {**REASONS, "argument.--save_config_filepath": PATH, **of_task}) == {}


def test_every_configuration_is_checked() -> None:
    """Count the points, of which the publisher lists 350, so that no recipe has an unchecked point."""
    addresses = [f"megatron_bridge/{name}@26.06" for name, _ in RECIPES.values()]
    points = {point for address in addresses for point in llmb.load_recipe(address).points}
    assert len(points) == 350 + sum(len(row["gpus"]) for row in ROWS)
