"""Condense resolved configurations of publishers' scripts to the facts that the conformance tests compare.

``python condense.py FOLDER`` reads FOLDER/*.json, which contain what the publishers' own scripts resolve on a CPU, and
writes the JSON files beside this script. Megatron-Bridge derives hundreds of keys from model, GPU type, dtype and
parallelism. Of these, only the keys that a run of llmb states are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

BRIDGE_KEYS = (
    "model.num_layers", "model.hidden_size", "model.ffn_hidden_size", "model.num_attention_heads",
    "model.num_query_groups", "model.seq_length", "dataset.sequence_length", "tokenizer.vocab_size",
    "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size", "model.context_parallel_size", "train.micro_batch_size",
    "train.global_batch_size", "train.train_iters", "train.eval_iters", "train.manual_gc", "train.manual_gc_interval",
    "ddp.use_megatron_fsdp", "ddp.check_for_nan_in_grad", "ddp.check_for_large_grads", "checkpoint.save",
    "logger.log_interval", "mixed_precision.grad_reduce_in_fp32", "rerun_state_machine.check_for_nan_in_loss",
    "model.cross_entropy_fusion_impl", "model.use_transformer_engine_op_fuser", "model.recompute_granularity",
    "model.recompute_method", "model.recompute_num_layers", "model.cpu_offloading_num_layers",
    "model.enable_cuda_graph", "model.cuda_graph_impl",
)  # fmt: skip
"""Keys of Megatron-Bridge's configuration that a run of llmb states, or that follow directly from such a key."""


def condense_bridge(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return one table for all numbers of GPUs that share model, GPU type, dtype and FP8 scaling."""
    models = {}
    for group in document["groups"].values():
        common = {key: value for key, value in group["common_config"].items() if key in BRIDGE_KEYS}
        size = group["points"][0]["model_size"]
        models[size] = {
            "config": common,
            "env": group["common_env"],
            "points": _rows(_bridge_point(point) for point in group["points"]),
        }
    first = next(iter(document["groups"].values()))["points"][0]
    same = {key: first[key] for key in ("image", "bridge_commit", "launch_env", "srun_args", "time")}
    return {"tag": document["tag"], **same, "models": models, "fix_release": document["fix_release"]}


def _bridge_point(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a point shares with other numbers of GPUs, and the rest."""
    config = {key: value for key, value in point["config"].items() if key in BRIDGE_KEYS}
    numbers = {
        "gpus": point["gpus"],
        "nodes": point["nodes"],
        "segment": point["segment"],
        "global_batch_size": config.pop("train.global_batch_size"),
    }
    words = [str(point["gpus"]) == word for word in point["script_args"]]
    arguments = ["GPUS" if is_gpus else word for is_gpus, word in zip(words, point["script_args"], strict=True)]
    shared = {
        "gpu_type": point["gpu_type"],
        "dtype": point["dtype"],
        "fp8_recipe": point["fp8_recipe"],
        "ntasks_per_node": point["ntasks_per_node"],
        "ranks_per_numa_node": point["ranks_per_numa_node"],
        "flops_per_sequence": point["flops_per_sequence"],
        "arguments": arguments,
        "config": config,
        "env": point["env"],
    }
    return shared, numbers


def _rows(points: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Merge the points that differ only in their numbers: one list per number."""
    rows: list[tuple[dict[str, Any], dict[str, list[Any]]]] = []
    for shared, numbers in points:
        for known, columns in rows:
            if known == shared:
                for name, value in numbers.items():
                    columns[name].append(value)
                break
        else:
            rows.append((shared, {name: [value] for name, value in numbers.items()}))
    return [
        {
            **{key: shared[key] for key in ("gpu_type", "dtype", "fp8_recipe") if key in shared},
            **columns,
            **{key: value for key, value in shared.items() if key not in ("gpu_type", "dtype", "fp8_recipe")},
        }
        for shared, columns in rows
    ]


RECENT_KEYS = (
    *BRIDGE_KEYS, "model.cuda_graph_scope", "model.expert_model_parallel_size", "model.expert_tensor_parallel_size",
    "model.recompute_modules", "model.moe_token_dispatcher_type", "model.moe_flex_dispatcher_backend",
    "model.pipeline_model_parallel_layout", "model.vocab_size", "comm_overlap.overlap_moe_expert_parallel_comm",
    "dataset.seq_length", "dataset.dataset_name", "peft",
)  # fmt: skip
"""The keys since release 26.06."""

OF_LAUNCHER = ("--container_image", "--custom_mounts", "--account", "--partition", "--log_dir", "--time_limit")
"""Arguments that only the publisher's launcher uses: paths, accounts and limits of a site."""

TRAINING = ("pretrain_", "finetune_")
"""The groups of Megatron-Bridge, by the beginning of their names."""


def condense_recent(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return one group for each workload and size, with one row for all numbers of GPUs that share the rest."""
    groups = {}
    for name, group in document["groups"].items():
        if not name.startswith(TRAINING):
            continue
        first = group["points"][0]
        groups[name.removeprefix("pretrain_")] = {
            **{key: first[key] for key in ("image", "bridge_commit", "srun_args")},
            "config": {key: value for key, value in group["common_config"].items() if key in RECENT_KEYS},
            "env": group["common_env"],
            "points": _rows(_recent_point(point) for point in group["points"]),
        }
    return {"tag_commit": document["tag_commit"], "groups": groups}


def _recent_point(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a point shares with other numbers of GPUs, and the rest."""
    config = {key: value for key, value in point["config"].items() if key in RECENT_KEYS}
    batch = config.pop("train.global_batch_size")
    numbers = {**{key: point[key] for key in ("gpus", "nodes", "segment")}, "global_batch_size": batch}
    arguments = {key: value for key, value in named_arguments(point["script_args"]).items() if key not in OF_LAUNCHER}
    assert arguments.pop("--num_gpus") == str(point["gpus"])
    shared = {
        "gpu_type": point["gpu_type"],
        "dtype": point["dtype"],
        **{key: point[key] for key in ("time", "ntasks_per_node", "proxy", "flops_per_sequence")},
        "arguments": arguments,
        "config": config,
        "env": {**point["env"], **point["launch_env"]},
    }
    return shared, numbers


def condense_unlisted(points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for all numbers of GPUs that share the rest, of an output of resolve_release.py."""
    return _rows(_unlisted_point(point) for point in points)


def _unlisted_point(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a point shares with other numbers of GPUs, and the rest."""
    config = {key: value for key, value in point["config"].items() if key in RECENT_KEYS}
    batch = config.pop("train.global_batch_size")
    arguments = {key: value for key, value in named_arguments(point["arguments"]).items() if key not in OF_LAUNCHER}
    assert arguments.pop("--num_gpus") == str(point["gpus"])
    shared = {"gpu_type": point["gpu_type"], "dtype": point["dtype"], "arguments": arguments, "config": config}
    return {**shared, "env": point["env"]}, {"gpus": point["gpus"], "global_batch_size": batch}


def named_arguments(words: Iterable[str]) -> dict[str, str]:
    """Return arguments and overrides with their values. A flag has the value ""."""
    named: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("-") or "=" in word:
            name, _, value = word.partition("=")
            named[name] = value
        else:
            named[name] = word
    return named


def condense_nemo(document: Mapping[str, Any], other_scales: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration that all points of a recipe share, and the differences of each point."""
    recipes = {}
    for address, recipe in document.items():
        common = recipe["common"]["config"]
        others = [
            {**scale, "config": {key: value for key, value in scale["config"].items() if common.get(key, ...) != value}}
            for scale in other_scales[address]
        ]
        recipes[address] = {**recipe, "other_scales": others}
    return recipes


def condense_maxtext(points: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments, flags and variables that all points share, and the differences of each point."""
    flat = [
        {
            "gpu_type": point["gpu_type"],
            "dtype": point["dtype"],
            "gpus": point["gpus"],
            **{phase: _phase(point[phase]) for phase in ("profile", "measure")},
        }
        for point in points
    ]
    common = {
        phase: {
            part: {k: v for k, v in flat[0][phase][part].items() if all(p[phase][part].get(k) == v for p in flat)}
            for part in ("args", "xla_flags", "env")
        }
        for phase in ("profile", "measure")
    }
    for point in flat:
        for phase, parts in common.items():
            point[phase] = {
                part: {k: v for k, v in point[phase][part].items() if k not in known} for part, known in parts.items()
            }
    return {"common": common, "points": flat}


def _phase(phase: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return arguments and flags by name. Of duplicates the last takes effect."""
    script, config, *pairs = phase["args"]
    flags = (flag.removeprefix("--") for flag in phase["xla_flags"])
    return {
        "args": {
            "script": f"{script} {config}",
            **{name: value for name, _, value in (p.partition("=") for p in pairs)},
        },
        "xla_flags": {name: value for name, _, value in (flag.partition("=") for flag in flags)},
        "env": dict(phase["env"]),
    }


def _write(name: str, document: Any, depth: int) -> None:
    (HERE / name).write_text(_format(document, depth) + "\n")


def _format(value: Any, depth: int, indent: str = "") -> str:
    """Format JSON with one line per item, down to this depth."""
    if not depth or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {_format(item, depth - 1, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_format(item, depth - 1, inner)}" for item in value) + f"\n{indent}]"


def main(folder: Path) -> None:
    """Write one file per publisher's release."""

    def read(name: str) -> Any:
        return json.loads((folder / name).read_text())

    for release in ("25.10", "25.12"):
        _write(f"megatron_bridge-{release}.json", condense_bridge(read(f"mbridge-v{release}.json")), 5)
    _write("megatron_bridge-26.06.json", condense_recent(read("mbridge-v26.06.01.json")), 5)
    _write("megatron_bridge-26.06-unlisted.json", condense_unlisted(read("mbridge-v26.06.01-unlisted.json")), 1)
    _write("nemo_launcher-24.11.json", condense_nemo(read("nemo-v24.11.1.json"), read("nemo-other-scales.json")), 3)
    _write("maxtext-24.11.json", condense_maxtext(read("maxtext-v24.11.1.json")), 3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
