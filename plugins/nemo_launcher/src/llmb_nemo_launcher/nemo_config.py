"""NeMo's configuration: the YAML file and the Hydra overrides of a run."""

import json
from collections.abc import Mapping
from typing import Any

from llmb import Nsys, Run, key_values, with_paths
from llmb_nemo_launcher.recipe_placeholders import target_paths

SET_BY_LLMB = {
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
    "model.kv_channels": "model.head_size",
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
"""Keys that [framework] config must not set, each with the key of the spec that sets it."""

TIMING_BUFFER = "exp_manager.step_timing_kwargs.buffer_size"
"""Number of steps over which NeMo averages a printed time. Without it, NeMo prints the time of each step."""

LOG_INTERVAL = "trainer.log_every_n_steps"
"""Interval of printed steps: NeMo prints the steps whose number it divides."""


def config_tree(run: Run[Any]) -> dict[str, Any]:
    """Return the recipe's configuration, completed with the values of this run for every overridden key.

    The file alone describes the run, and every override changes an existing key, as Hydra requires.
    """
    settings = run.settings
    tree: dict[str, Any] = with_paths(settings["config"], run.paths, names=target_paths(run))
    if buffer := settings.get("step_timing_buffer"):
        _put(tree, TIMING_BUFFER, buffer)
    for key, value in {**_model_sizes(run), **override_values(run)}.items():
        _put(tree, key, value)
    return tree


def config_file(run: Run[Any]) -> str:
    """Return the configuration as YAML. The text is JSON, which is valid YAML, with one value per line."""
    return json.dumps(config_tree(run), separators=(",\n", ": ")) + "\n"


def override_arguments(run: Run[Any]) -> tuple[str, ...]:
    """Return the override arguments: those of the run, then those of the spec, which take precedence."""
    return key_values(override_values(run)) + key_values(run.options.config)


def override_values(run: Run[Any]) -> dict[str, Any]:
    """Return the keys that differ between runs of one recipe: scale, parallelism, batch, dtype and capture."""
    parallelism, model = run.parallelism, run.model
    values: dict[str, Any] = {
        "trainer.num_nodes": run.nodes,
        "trainer.devices": run.gpus_per_node,
        "trainer.max_steps": run.steps,
        "trainer.val_check_interval": run.steps,
        "model.global_batch_size": parallelism.global_batch_size,
        "model.micro_batch_size": parallelism.micro_batch_size,
        "model.tensor_model_parallel_size": parallelism.tp,
        "model.pipeline_model_parallel_size": parallelism.pp,
        "model.virtual_pipeline_model_parallel_size": parallelism.vp,
        "model.context_parallel_size": parallelism.cp,
        "model.num_layers": model.layers,
        "model.encoder_seq_length": model.seq_len,
        "model.data.seq_length": model.seq_len,
    }
    if model.experts > 1:
        values["model.expert_model_parallel_size"] = parallelism.ep
    return {**values, **flag_values(run), **_capture(run)}


def timing_buffer(run: Run[Any]) -> int | None:
    """Return the value of `TIMING_BUFFER` from the spec or the recipe, or None if only Hydra can evaluate it."""
    buffer = _spec_overrides(run).get(TIMING_BUFFER, run.settings.get("step_timing_buffer", 1))
    return buffer if isinstance(buffer, int) else None


def log_interval(run: Run[Any]) -> int:
    """Return the value of `LOG_INTERVAL` from the spec or the recipe, or 1 if only Hydra can evaluate it."""
    every = _spec_overrides(run).get(LOG_INTERVAL, run.settings["config"]["trainer"].get("log_every_n_steps", 1))
    return every if isinstance(every, int) and every > 0 else 1


def _spec_overrides(run: Run[Any]) -> Mapping[str, Any]:
    """Return the overrides of the spec by their keys without Hydra's prefix."""
    return {name.lstrip("+"): value for name, value in run.options.config.items()}


def flag_values(run: Run[Any]) -> dict[str, bool]:
    """Return the boolean keys that depend on FP8, tensor parallelism and pipeline parallelism."""
    true = {"fp8": run.dtype == "fp8", "tp": run.parallelism.tp > 1, "pp": run.parallelism.pp > 1}
    flags = run.settings["flags"]
    return {key: true[cause] for cause, keys in flags.items() for key in keys}


def _capture(run: Run[Any]) -> dict[str, Any]:
    """Return the keys that select the steps and ranks of an nsys capture."""
    if run.profile is None or run.profile.tool != "nsys":
        return {"model.nsys_profile.enabled": False}
    return {
        "model.nsys_profile.enabled": True,
        "model.nsys_profile.start_step": run.profile.start_step,
        "model.nsys_profile.end_step": run.profile.stop_step,
        "model.nsys_profile.ranks": Nsys.of(run.settings).captured(run),
    }


def _model_sizes(run: Run[Any]) -> dict[str, Any]:
    """Return the keys for the sizes of the model that are the same for all runs of a recipe."""
    model = run.model
    sizes = {
        "model.hidden_size": model.hidden,
        "model.ffn_hidden_size": model.ffn,
        "model.num_attention_heads": model.heads,
        "model.num_query_groups": model.query_groups,
    }
    if model.head_size is not None:  # by default, hidden / heads
        sizes["model.kv_channels"] = model.head_size
    if "max_position_embeddings" not in run.settings["config"]["model"]:
        sizes["model.max_position_embeddings"] = model.seq_len
    if model.experts > 1:
        sizes |= {"model.num_moe_experts": model.experts, "model.moe_router_topk": model.top_k}
    return sizes


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key and create the tables above it."""
    *above, last = key.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value


def dotted_items(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every dotted key of the configuration with its value: tables, and the keys in them."""
    found = {}
    for name, value in tree.items():
        found[f"{prefix}{name}"] = value
        if isinstance(value, Mapping):
            found |= dotted_items(value, f"{prefix}{name}.")
    return found
