"""Megatron-Bridge since release 26.06: every published point resolves as NVIDIA's launcher and scripts resolve it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from conformance.condense import named_arguments
from parts.conformance import (
    Differences,
    differences,
    directives,
    facts,
    job_env,
    outdated,
    plan_runs,
    step_options,
    unexplained,
)
from parts.conformance_of_bridge import PATH, REASONS

import llmb
from llmb import load_recipe
from llmb.analysis.flops import flops_per_sequence
from llmb.values.model import FlopFormula
from llmb.values.rules.parallelism_rules import layout_stages

Facts = Mapping[str, Any]

GROUPS: Mapping[str, Facts] = facts("megatron_bridge-26.06")["groups"]
RECIPES = {
    "llama3.1_8b": ("llama3.1-8b", 50),
    "llama3.1_70b": ("llama3.1-70b", 40),
    "llama3.1_405b": ("llama3.1-405b", 18),
    "qwen3_30b": ("qwen3-30b-a3b", 19),
    "qwen3_235b": ("qwen3-235b-a22b", 10),
    "gpt_oss_120b": ("gpt-oss-120b", 29),
    "deepseek-v3_671b": ("deepseek-v3", 72),
    "kimi-k2_1t": ("kimi-k2", 8),
    "nemotron-h_56b": ("nemotron-h-56b", 29),
    "nemotron_3_30b": ("nemotron3-nano-30b", 31),
    "nemotron_3_120b": ("nemotron3-super-120b", 24),
    "finetune_llama3_70b": ("llama3-70b-lora", 20),
}
"""The recipe of each group, and how many points NVIDIA publishes. The facts lack some of these points."""

UNLISTED = {
    "qwen3_30b": ("mxfp8", "cs"),
    "qwen3_235b": ("mxfp8", "cs"),
    "nemotron_3_30b": ("gb200 mxfp8", "cs"),
    "nemotron_3_120b": ("gb200 mxfp8", "b300 mxfp8", "nvfp4"),
    "finetune_llama3_70b": ("mxfp8",),
}
"""Configurations that the scripts accept and the publisher does not list; test_unlisted_conformance.py checks them."""

TOKEN = "llmb passes the token in a file that only the job reads"
OF_LORA = {
    "argument.--hf_token": TOKEN,
    "env.HF_TOKEN": TOKEN,
    "argument.--pretrained_checkpoint": PATH,
    "argument.--dataset_root": PATH,
}
"""Further differences of the group that fine-tunes, each with its reason."""

FORMULAS: Mapping[str, FlopFormula] = {"finetune_llama3_70b": "megatron-bridge-0.1"}
"""The formula of NVIDIA's function on a machine without the packed dataset, which the recipe's formula needs."""

LAYOUT, OVERLAP = "model.pipeline_model_parallel_layout", "comm_overlap.overlap_moe_expert_parallel_comm"
VARIANTS = {"fp8_cs": "cs", "fp8_mx": "mxfp8", "fp8_sc": "sc"}
PARALLELISM = {
    "model.tensor_model_parallel_size": "tp",
    "model.pipeline_model_parallel_size": "pp",
    "model.virtual_pipeline_model_parallel_size": "vp",
    "model.context_parallel_size": "cp",
    "model.expert_model_parallel_size": "ep",
    "train.micro_batch_size": "micro_batch_size",
    "train.global_batch_size": "global_batch_size",
}
SIZES = {
    "model.num_layers": "layers",
    "model.hidden_size": "hidden",
    "model.num_attention_heads": "heads",
    "model.num_query_groups": "query_groups",
    "model.seq_length": "seq_len",
}
LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}


def stated_config(plan: llmb.RunPlan) -> dict[str, Any]:
    """Return the keys of Megatron-Bridge's configuration that follow from the values of the run."""
    run, settings = plan.run, plan.run.settings
    modules = settings.get("recompute_modules")
    granularity = "full" if run.recompute_layers else "selective" if modules else None
    stated = {
        **{key: getattr(run.parallelism, name) for key, name in PARALLELISM.items()},
        **{key: getattr(run.model, name) for key, name in SIZES.items()},
        "ddp.use_megatron_fsdp": run.parallelism.fsdp > 1,
        "model.cpu_offloading_num_layers": run.offload_layers,
        "model.recompute_num_layers": run.recompute_layers or None,
        "model.recompute_granularity": granularity,
        "model.recompute_modules": list(modules) if modules else None,
        "model.cuda_graph_impl": settings["cuda_graph_impl"],
    }
    if "dataset" in settings.get("folders", {}):
        stated["dataset.seq_length"] = run.seq_len
    if run.cuda_graphs:
        stated["model.cuda_graph_scope"] = list(settings["cuda_graph_scope"])
    if dispatcher := settings.get("dispatcher"):
        stated["model.moe_token_dispatcher_type"] = "alltoall" if dispatcher == "alltoall" else "flex"
    if dispatcher in ("hybridep", "deepep"):
        stated["model.moe_flex_dispatcher_backend"] = dispatcher
    return stated


def stages(layout: str | list[list[str]] | None) -> list[str] | None:
    """Return the stages of a pipeline layout in the notation of Megatron-Core, without repetitions."""
    if isinstance(layout, list):
        return ["".join(LETTERS[layer] for layer in stage) for stage in layout]
    return layout_stages(layout) if layout else None


def found_differences(plan: llmb.RunPlan, group: Facts, row: Facts) -> Differences:
    column = row["gpus"].index(plan.run.gpus)
    config = {**group["config"], **row["config"], "train.global_batch_size": row["global_batch_size"][column]}
    stated = stated_config(plan)
    train = plan.job.phases[-1]
    start = next(index for index, word in enumerate(train.command) if word.endswith("run_script.py"))
    arguments = {**row["arguments"], "--num_gpus": str(plan.run.gpus)}
    layout = {
        "nodes": (row["nodes"][column], plan.job.nodes),
        "segment": (row["segment"][column], plan.job.domain_nodes),
        "tasks": (row["ntasks_per_node"], plan.job.tasks_per_node),
        "numa": (row["ntasks_per_node"] // 2, int(train.env["NUMA_GPUS"])),
        "image": (group["image"].replace("#", "/"), plan.run.image.ref if plan.run.image else None),
        "time": (row["time"], directives(plan)["time"]),
        "proxy": (row["proxy"], plan.run.proxy),
        "stages": (stages(config.get(LAYOUT)), stages(plan.run.parallelism.pipeline_layout)),
        "overlap": (config.get(OVERLAP) or False, plan.run.settings.get("a2a_overlap", False)),
        "vocab": (
            config.get("model.vocab_size") or plan.run.model.vocab,
            plan.run.model.vocab,
        ),  # null: the tokenizer's
        "commit": (True, any(group["bridge_commit"] in task.script.text for task in plan.tasks)),
    }
    return {
        **differences("config", {key: config.get(key) for key in stated}, stated),
        **differences("env", {**group["env"], **row["env"]}, job_env(plan)),
        **differences("argument", arguments, named_arguments(train.command[start + 1 :])),
        **{f"layout.{name}": pair for name, pair in layout.items() if pair[0] != pair[1]},
        **differences("srun", named_arguments(group["srun_args"]), step_options(plan)),
    }


def planned_rows(name: str) -> Iterator[tuple[llmb.RunPlan, Facts]]:
    """Plan the runs of a group: those of one GPU type and dtype together, because each spec reads the recipe."""
    recipe, _ = RECIPES[name]
    rows: dict[tuple[str, str, str], dict[int, Facts]] = {}
    for row in GROUPS[name]["points"]:
        key = (row["gpu_type"], row["dtype"], row["arguments"]["--compute_dtype"])
        rows.setdefault(key, {}).update(dict.fromkeys(row["gpus"], row))
    for (gpu_type, dtype, compute_dtype), by_gpus in rows.items():
        variant = {"variant": VARIANTS[compute_dtype]} if compute_dtype in VARIANTS else {}
        address = f"megatron_bridge/{recipe}@26.06"
        for plan in plan_runs(address, gpu_type, dtype, list(by_gpus), workload=variant):
            yield plan, by_gpus[plan.run.gpus]


@pytest.mark.parametrize("name", RECIPES)
def test_every_published_point_resolves_as_published(name: str) -> None:
    found = {}
    for plan, row in planned_rows(name):
        found[plan.run.name] = found_differences(plan, GROUPS[name], row)
        formula = FORMULAS.get(name, plan.run.flop_formula)
        flops = flops_per_sequence(plan.run.model, formula, tp=plan.run.parallelism.tp)
        assert flops == pytest.approx(row["flops_per_sequence"], rel=1e-4), plan.run.name

    of_group = OF_LORA if name in FORMULAS else {}
    reasons = {**REASONS, "argument.--save_config_filepath": PATH, **of_group}
    assert len(found) == sum(len(row["gpus"]) for row in GROUPS[name]["points"])
    assert unexplained(found, reasons) == {}
    assert outdated(found, reasons) == set()


@pytest.mark.parametrize("name", RECIPES)
def test_the_recipe_has_all_published_points(name: str) -> None:
    recipe, count = RECIPES[name]
    points = load_recipe(f"megatron_bridge/{recipe}@26.06").points
    listed = [point for point in points if not {*names_of(point)} & {*UNLISTED.get(name, ())}]
    assert len({(point.gpu_type, point.dtype, point.gpus) for point in listed}) == count  # each once, in any variant


def names_of(point: llmb.Point) -> tuple[str, str]:
    """Return the variant or dtype of a point, alone and behind its GPU type."""
    kind = point.variant or point.dtype
    return kind, f"{point.gpu_type} {kind}"
