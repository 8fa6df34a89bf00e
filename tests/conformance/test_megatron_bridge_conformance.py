"""Megatron-Bridge: every published point, and other scales, resolve as NVIDIA's launcher and scripts resolve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
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
from llmb.analysis.flops import flops_per_sequence

LAUNCHER = ("--container_image", "--account", "--partition", "--log_dir", "--time_limit")
NUMA = "GB300 of 25.12: NVIDIA binds all ranks to node 0, fixed in 26.02; llmb uses the node of each GPU"
WRITABLE = "llmb's containers are always writable"
REASONS_OF_RELEASE = {
    "25.10": {"argument.--config_file": PATH},
    "25.12": {
        "layout.numa": NUMA,
        "override.logger.save_config_filepath": PATH,
        "argument.--hf_token": "llmb passes the token in the environment alone, where no other user sees it",
        **dict.fromkeys((f"argument.{name}" for name in LAUNCHER), "the script in the container does not use it"),
    },
}
VARIANTS = {"cs": "cs", "mx": "mxfp8"}
PARALLELISM = {
    "model.tensor_model_parallel_size": "tp",
    "model.pipeline_model_parallel_size": "pp",
    "model.virtual_pipeline_model_parallel_size": "vp",
    "model.context_parallel_size": "cp",
    "train.micro_batch_size": "micro_batch_size",
    "train.global_batch_size": "global_batch_size",
}
SIZES = {
    "model.num_layers": "layers",
    "model.hidden_size": "hidden",
    "model.ffn_hidden_size": "ffn",
    "model.num_attention_heads": "heads",
    "model.num_query_groups": "query_groups",
    "model.seq_length": "seq_len",
    "tokenizer.vocab_size": "vocab",
}


def stated_config(plan: llmb.RunPlan) -> dict[str, Any]:
    """Return the keys of Megatron-Bridge's configuration that follow from the values of the run."""
    run = plan.run
    release, graphs = run.release[:5], "local" if run.cuda_graphs else "none"
    return {
        **{key: getattr(run.parallelism, name) for key, name in PARALLELISM.items()},
        **{key: getattr(run.model, name) for key, name in SIZES.items()},
        "ddp.use_megatron_fsdp": run.parallelism.fsdp > 1,
        "model.cpu_offloading_num_layers": run.offload_layers,
        "model.recompute_num_layers": run.recompute_layers or None,
        "model.recompute_granularity": "full" if run.recompute_layers else None,
        "model.recompute_method": "block" if run.recompute_layers else None,
        **({"model.cuda_graph_impl": graphs} if release == "25.12" else {"model.enable_cuda_graph": run.cuda_graphs}),
    }


def script_arguments(words: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of run_script.py with their values, and the overrides after them."""
    options = {name: value for name, value in pairwise(words) if name.startswith("-")}
    overrides = dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("-"))
    return options, overrides


def changed_env(plan: llmb.RunPlan, fix: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the variables that a fix changes for the GPU type of a run; None means no longer set."""
    changes = (each for each in fix.get("changes", ()) if plan.run.gpu_type in each["gpu_types"])
    return {each["what"].removeprefix("env."): each["is"] for each in changes if each["what"].startswith("env.")}


def found_differences(
    plan: llmb.RunPlan, release: Mapping[str, Any], size: str, row: Mapping[str, Any], fix: Mapping[str, Any]
) -> Differences:
    gpus = plan.run.gpus
    column = row["gpus"].index(gpus)
    model, train = release["models"][size], plan.job.phases[-1]
    config = {**model["config"], **row["config"], "train.global_batch_size": row["global_batch_size"][column]}
    stated = {key: value for key, value in stated_config(plan).items() if key in config}
    theirs, their_overrides = script_arguments([str(gpus) if word == "GPUS" else word for word in row["arguments"]])
    start = next(index for index, word in enumerate(train.command) if word.endswith("run_script.py"))
    ours, our_overrides = script_arguments(train.command[start + 1 :])
    if row["fp8_recipe"] is None:
        theirs.pop("--fp8_recipe", None)  # a default that BF16 and NVFP4 do not use
    published_env = {**model["env"], **row["env"], **release["launch_env"], **changed_env(plan, fix)}
    env = {**job_env(plan), **dict.fromkeys(plan.job.environment.secrets, "dummy")}
    repeated = {name: value for name, value in our_overrides.items() if str(config.get(name)) == value}
    layout = {
        "nodes": (row["nodes"][column], plan.job.nodes),
        "segment": (row["segment"][column], plan.job.domain_nodes),
        "tasks": (row["ntasks_per_node"], plan.job.tasks_per_node),
        "numa": (row["ranks_per_numa_node"], int(train.env["NUMA_GPUS"])),
        "image": (release["image"].replace("#", "/"), plan.run.image.ref if plan.run.image else None),
        "time": (release["time"], directives(plan)["time"]),
        "commit": (True, any({**release, **fix}["bridge_commit"] in task.script.text for task in plan.tasks)),
    }
    srun = dict.fromkeys(["--no-container-mount-home"], "") | {"--mpi": "pmix"}
    assert sorted(release["srun_args"]) == ["--mpi=pmix", "--no-container-mount-home"]
    return {
        **differences("config", {key: config[key] for key in stated}, stated),
        **differences("env", {name: value for name, value in published_env.items() if value is not None}, env),
        **differences("argument", theirs, {name: value for name, value in ours.items() if name in theirs}),
        **differences("override", {**their_overrides, **repeated}, our_overrides),
        **{f"layout.{name}": pair for name, pair in layout.items() if pair[0] != pair[1]},
        **differences("srun", srun, step_options(plan)),
    }


@pytest.mark.parametrize(
    ("release", "exact", "count"),
    [("25.10", "25.10.00", 142), ("25.10", "25.10.02", 142), ("25.12", "25.12.00", 174), ("25.12", "25.12.02", 174)],
)
def test_every_published_point_resolves_as_published(release: str, exact: str, count: int) -> None:
    published = facts(f"megatron_bridge-{release}")
    fix = published["fix_release"] if published["fix_release"]["tag"] == f"v{exact}" else {}
    reasons = {**REASONS, "srun.--container-writable": WRITABLE, **REASONS_OF_RELEASE[release]}
    found = {}
    for size, model in published["models"].items():
        for row in model["points"]:
            variant = {"variant": VARIANTS[row["fp8_recipe"]]} if row["fp8_recipe"] else {}
            address = f"megatron_bridge/llama3.1-{size}@{exact}"
            for plan in plan_runs(address, row["gpu_type"], row["dtype"], row["gpus"], workload=variant):
                name = f"{size}, {row['gpu_type']} {row['dtype']} {row['fp8_recipe'] or ''} {plan.run.gpus}"
                found[name] = found_differences(plan, published, size, row, fix)
                flops = flops_per_sequence(plan.run.model, plan.run.flop_formula)
                assert flops == pytest.approx(row["flops_per_sequence"], rel=1e-4), name

    assert len(found) == count
    assert unexplained(found, reasons) == {}
    assert outdated(found, reasons) == set()


def segment_nodes(nodes: int, gpus_per_node: int) -> int | None:
    """Return the publisher's segment: at most 18 nodes, for GPU types with 4 GPUs per node (utils/executors.py)."""
    return next(each for each in range(18, 0, -1) if nodes % each == 0) if gpus_per_node == 4 else None


@pytest.mark.parametrize(("release", "count", "invalid"), [("25.10", 97, 2), ("25.12", 124, 2)])
def test_other_scales_resolve_as_the_publisher_s_functions_compute_them(release: str, count: int, invalid: int) -> None:
    found, rejected = {}, []
    for row in facts("megatron_bridge-other-scales")[release]:
        degrees = {key: row[key] for key in ("tp", "pp", "vp", "cp", "micro_batch_size")}
        variant = {"variant": VARIANTS[row["fp8_recipe"]]} if row["fp8_recipe"] else {}
        point = (f"megatron_bridge/llama3.1-{row['size']}@{release}", row["gpu_type"], row["dtype"])
        for gpus, batch in zip(row["gpus"], row["global_batch_size"], strict=True):
            name = f"{row['size']}, {row['gpu_type']} {row['dtype']} {row['fp8_recipe'] or ''} {gpus}"
            if gpus % (row["tp"] * row["pp"] * row["cp"]):  # Megatron-Core exits
                with pytest.raises(
                    llmb.SpecError, match=r"or a \[parallelism\] of your own instead of the publisher's"
                ):
                    plan_runs(*point, gpus, workload=variant)
                rejected.append(name)
                continue
            [plan] = plan_runs(*point, gpus, workload=variant)
            nodes = -(-gpus // plan.job.gpus_per_node)
            ours = {key: getattr(plan.run.parallelism, key) for key in (*degrees, "global_batch_size")}
            ours |= {"nodes": plan.job.nodes, "segment": plan.job.domain_nodes}
            theirs = {"nodes": nodes, "segment": segment_nodes(nodes, plan.job.gpus_per_node)}
            found[name] = differences("layout", {**degrees, "global_batch_size": batch, **theirs}, ours)

    assert unexplained(found, {}) == {}
    assert (len(found), len(rejected)) == (count, invalid)
