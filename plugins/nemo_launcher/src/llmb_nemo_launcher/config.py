"""NeMo's configuration: the file, and the overrides by which a run differs from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llmb import Nsys, Run, key_values, with_paths
from llmb_nemo_launcher.places import places

DECIDED = {
    "trainer.num_nodes": "workload.gpus",
    "trainer.devices": "target.gpus_per_node",
    "trainer.max_steps": "workload.steps",
    "trainer.val_check_interval": "workload.steps",
    "model.global_batch_size": "parallelism.global_batch_size",
    "model.micro_batch_size": "parallelism.micro_batch_size",
    "model.tensor_model_parallel_size": "parallelism.tp",
    "model.pipeline_model_parallel_size": "parallelism.pp",
    "model.virtual_pipeline_model_parallel_size": "parallelism.vp",
    "model.context_parallel_size": "parallelism.cp",
    "model.expert_model_parallel_size": "parallelism.ep",
    "model.num_layers": "model.layers",
    "model.hidden_size": "model.hidden",
    "model.ffn_hidden_size": "model.ffn",
    "model.num_attention_heads": "model.heads",
    "model.num_query_groups": "model.query_groups",
    "model.num_moe_experts": "model.experts",
    "model.moe_router_topk": "model.top_k",
    "model.encoder_seq_length": "model.seq_len",
    "model.data.seq_length": "model.seq_len",
    "model.nsys_profile.enabled": "profile.tool",
    "model.nsys_profile.start_step": "profile.start_step",
    "model.nsys_profile.end_step": "profile.stop_step",
    "model.nsys_profile.ranks": "profile.ranks",
    "model.data.index_mapping_dir": "framework.index_mapping_dir",
}
"""Keys of the configuration that the rest of a spec decides, and what decides them."""

TIMING_BUFFER = "exp_manager.step_timing_kwargs.buffer_size"
"""Over how many steps NeMo averages the times that it prints; raw ones without it."""


PRINTED_EVERY = "trainer.log_every_n_steps"
"""Only steps whose number is divisible by it are printed."""


def config_tree(run: Run[Any]) -> dict[str, Any]:
    """What the file holds: the recipe's configuration, and the overrides' own keys with the values of this run.

    So the file alone says what is run, and every override is one of a key that is there, as Hydra wants it.
    """
    settings = run.settings
    tree: dict[str, Any] = with_paths(settings["config"], run.paths, names=places(run))
    if buffer := settings.get("step_timing_buffer"):
        _put(tree, TIMING_BUFFER, buffer)
    for key, value in {**_architecture(run), **derived(run)}.items():
        _put(tree, key, value)
    return tree


def config_file(run: Run[Any]) -> str:
    """The tree as YAML: written as JSON, which is YAML too."""
    return json.dumps(config_tree(run), indent=2) + "\n"


def overrides(run: Run[Any]) -> tuple[str, ...]:
    """The words behind the command: what follows from the run, then the spec's own, which win."""
    return key_values(derived(run)) + key_values(run.options.config)


def derived(run: Run[Any]) -> dict[str, Any]:
    """The keys that differ between runs of one recipe: scale, division, batch, dtype, capture."""
    division, model = run.parallelism, run.model
    values: dict[str, Any] = {
        "trainer.num_nodes": run.nodes,
        "trainer.devices": run.gpus_per_node,
        "trainer.max_steps": run.steps,
        "trainer.val_check_interval": run.steps,
        "model.global_batch_size": division.global_batch_size,
        "model.micro_batch_size": division.micro_batch_size,
        "model.tensor_model_parallel_size": division.tp,
        "model.pipeline_model_parallel_size": division.pp,
        "model.virtual_pipeline_model_parallel_size": division.vp,
        "model.context_parallel_size": division.cp,
        "model.num_layers": model.layers,
        "model.encoder_seq_length": model.seq_len,
        "model.data.seq_length": model.seq_len,
    }
    if model.experts > 1:
        values["model.expert_model_parallel_size"] = division.ep
    return {**values, **_flags(run), **_capture(run)}


def timing_buffer(run: Run[Any]) -> int | None:
    """What `TIMING_BUFFER` will be: the spec's, else the recipe's; null where Hydra alone can tell."""
    buffer = _own(run).get(TIMING_BUFFER, run.settings.get("step_timing_buffer", 1))
    return buffer if isinstance(buffer, int) else None


def printed_every(run: Run[Any]) -> int:
    """What `PRINTED_EVERY` will be, as far as it can be known: 1 where Hydra alone can tell."""
    every = _own(run).get(PRINTED_EVERY, run.settings["config"]["trainer"].get("log_every_n_steps", 1))
    return every if isinstance(every, int) and every > 0 else 1


def _own(run: Run[Any]) -> Mapping[str, Any]:
    """The spec's own overrides, by the bare names of their keys."""
    return {name.lstrip("+"): value for name, value in run.options.config.items()}


def _flags(run: Run[Any]) -> dict[str, bool]:
    """Keys that are true where the run is FP8, or has tensor or pipeline parallelism."""
    true = {"fp8": run.dtype == "fp8", "tp": run.parallelism.tp > 1, "pp": run.parallelism.pp > 1}
    flags = run.settings["flags"]
    return {key: true[cause] for cause, keys in flags.items() for key in keys}


def _capture(run: Run[Any]) -> dict[str, Any]:
    if run.profile is None or run.profile.tool != "nsys":
        return {"model.nsys_profile.enabled": False}
    return {
        "model.nsys_profile.enabled": True,
        "model.nsys_profile.start_step": run.profile.start_step,
        "model.nsys_profile.end_step": run.profile.stop_step,
        "model.nsys_profile.ranks": Nsys.of(run.settings).captured(run),
    }


def _architecture(run: Run[Any]) -> dict[str, Any]:
    model = run.model
    sizes = {
        "model.hidden_size": model.hidden,
        "model.ffn_hidden_size": model.ffn,
        "model.num_attention_heads": model.heads,
        "model.num_query_groups": model.query_groups,
    }
    if "max_position_embeddings" not in run.settings["config"]["model"]:
        sizes["model.max_position_embeddings"] = model.seq_len
    if model.experts > 1:
        sizes |= {"model.num_moe_experts": model.experts, "model.moe_router_topk": model.top_k}
    return sizes


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *above, last = key.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value


def has_key(tree: Mapping[str, Any], key: str, *, table: bool = False) -> bool:
    """Whether this dotted key is in the configuration, with ``table`` as one."""
    node: Any = tree
    for name in key.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return isinstance(node, Mapping) or not table


def keys_of(tree: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Every dotted key of the configuration."""
    found = []
    for name, value in tree.items():
        found.append(f"{prefix}{name}")
        if isinstance(value, Mapping):
            found += keys_of(value, f"{prefix}{name}.")
    return found
