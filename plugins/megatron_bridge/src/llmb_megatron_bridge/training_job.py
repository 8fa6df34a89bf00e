"""Training job: wrapper, script, its arguments and the overrides of Megatron-Bridge's configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

from llmb import FrozenMap, Model, Nsys, Phase, Run, key_values, with_paths
from llmb_megatron_bridge.run_paths import path_names, scripts_folder
from llmb_megatron_bridge.script_values import passed_names

ARCHITECTURE = {
    "layers": ("model.num_layers",),
    "hidden": ("model.hidden_size",),
    "ffn": ("model.ffn_hidden_size",),
    "heads": ("model.num_attention_heads",),
    "query_groups": ("model.num_query_groups",),
    "vocab": ("tokenizer.vocab_size",),
    "seq_len": ("model.seq_length", "dataset.sequence_length"),
    "head_size": ("model.kv_channels",),
    "sliding_window": ("model.window_size",),
    "full_attention_every": ("model.window_attn_skip_freq",),
    "experts": ("model.num_moe_experts",),
    "top_k": ("model.moe_router_topk",),
    "expert_ffn": ("model.moe_ffn_hidden_size",),
    "shared_expert_ffn": ("model.moe_shared_expert_intermediate_size",),
    "latent_size": ("model.moe_latent_size",),
    "layer_pattern": ("model.hybrid_layer_pattern",),
    "mtp_depth": ("model.mtp_num_layers",),
    "mtp_pattern": ("model.mtp_hybrid_override_pattern",),
    "mla.q_rank": ("model.q_lora_rank",),
    "mla.kv_rank": ("model.kv_lora_rank",),
    "mla.head_size": ("model.qk_head_dim",),
    "mla.rope_head_size": ("model.qk_pos_emb_head_dim",),
    "mla.value_head_size": ("model.v_head_dim",),
    "mamba.heads": ("model.mamba_num_heads",),
    "mamba.head_size": ("model.mamba_head_dim",),
    "mamba.groups": ("model.mamba_num_groups",),
    "mamba.state": ("model.mamba_state_dim",),
}
"""Keys of Megatron-Bridge's configuration for each size of a model."""

WRAPPER = "numa_rank_wrapper.sh"


def train_phase(run: Run[Any], values: Mapping[str, Any]) -> Phase:
    """Return the training phase. The overrides of the spec come last, so they take precedence.

    ``values`` are the `script_values` of the run.
    """
    names = path_names(run)
    recipe = run.settings.get("overrides", {})
    overrides = {**recipe, **_model_sizes(run), **_spec_overrides(run), **_capture(run), **run.options.config}
    report = f"{run.paths.run}/nsys_profile/profile_{run.id}"
    command = (
        *(Nsys.of(run.settings).words(run, report) if run.profile else ()),
        *("bash", f"{run.paths.run}/{WRAPPER}"),
        *with_paths(run.settings["command"], run.paths, names=names),
        *with_paths(run.settings["arguments"], run.paths, names=names),
        *_arguments(run, values),
        *key_values(with_paths(overrides, run.paths, names=names)),
    )
    outputs = Nsys.of(run.settings).reports(run, report) if run.profile else ()
    return Phase(name="train", command=command, env=FrozenMap(_wrapper_env(run)), outputs=outputs)


def _arguments(run: Run[Any], values: Mapping[str, Any]) -> list[str]:
    """Return the arguments of the script, in the order in which the recipe lists their names."""
    passed = passed_names(run, values)
    named = run.settings["argument_names"].items()
    return [word for name, option in named if name in passed for word in (option, _text(values[name]))]


def _text(value: Any) -> str:
    """Return a value as an argument. The script has no argument for "alltoall", which is no flexible dispatcher."""
    if isinstance(value, list | tuple):
        return ",".join(value)
    return "None" if value == "alltoall" else str(value)


def overridable_sizes(run: Run[Any]) -> set[str]:
    """Return the sizes of a model that the script takes as arguments, or as overrides of the configuration."""
    named = set(run.settings["argument_names"])
    own_script = "layers" in named and "passed" not in run.settings  # of the plugin, without overrides
    return named if own_script else named | set(_size_keys(run))


def _size_keys(run: Run[Any]) -> Mapping[str, Sequence[str]]:
    """Return the keys of the configuration for each size. A recipe states its own if a checkpoint fixes the others."""
    keys: Mapping[str, Sequence[str]] = run.settings.get("size_keys", ARCHITECTURE)
    return keys


def _model_sizes(run: Run[Any]) -> dict[str, Any]:
    """Return the overrides for the sizes of a proxy. The script selects a published model by its name."""
    if not run.proxy:
        return {}
    keys = _size_keys(run)
    changed = [name for name in keys if _size(run.model, name) != _size(run.published_model, name)]
    overridden = [name for name in changed if name in overridable_sizes(run) - set(run.settings["argument_names"])]
    return {key: _config_value(name, _size(run.model, name)) for name in overridden for key in keys[name]}


def _size(model: Model, name: str) -> Any:
    """Return a size of a model, or of a part such as ``mla.q_rank``. Return None if the model has no such part."""
    part, _, size = name.rpartition(".")
    owner = getattr(model, part) if part else model
    return None if owner is None else getattr(owner, size)


def _config_value(name: str, value: Any) -> Any:
    """Return a size as the configuration states it: a window to the left and right, null for no prediction."""
    if name == "sliding_window":
        return f"[{value},0]"
    return "null" if name == "mtp_depth" and not value else value


def _spec_overrides(run: Run[Any]) -> dict[str, Any]:
    """Return the overrides for values of the spec that the script has no argument for."""
    names = run.settings["argument_names"]
    overrides: dict[str, Any] = {} if "steps" in names else {"train.train_iters": run.steps}
    chosen = run.parallelism.pp > 1 or "parallelism.vp" in run.differences
    computed = "config_file" in names or "passed" in run.settings  # the other scripts have no argument for no vp
    if chosen and run.parallelism.vp is None and "vp" in names and not computed:
        overrides["model.virtual_pipeline_model_parallel_size"] = "null"  # without the argument the script sets its own
    return overrides


def _capture(run: Run[Any]) -> dict[str, Any]:
    """Return the overrides that select the steps and ranks of an nsys capture."""
    if run.profile is None:
        return {}
    return {
        "profiling.use_nsys_profiler": True,
        "profiling.profile_step_start": run.profile.start_step,
        "profiling.profile_step_end": run.profile.stop_step,
        "profiling.profile_ranks": Nsys.of(run.settings).captured(run),
        "profiling.record_shapes": False,
    }


def _wrapper_env(run: Run[Any]) -> dict[str, str]:
    """Return the variables that the rank wrapper reads."""
    env = {}
    if run.gpu_type != "cpu":
        env["NUMA_GPUS"] = str(max(1, run.accelerator.gpus_per_node // 2))  # all these nodes have two sockets
    if scripts := scripts_folder(run):
        env["SCRIPTS"] = scripts
    return env
