"""Training phase: wrapper, script, its arguments and the overrides of Megatron-Bridge's configuration."""

from __future__ import annotations

from typing import Any

from llmb import FrozenMap, Nsys, Phase, Repository, Run, key_values, with_paths

PARALLELISM = ("tp", "pp", "vp", "cp", "micro_batch_size", "global_batch_size")

ARCHITECTURE = {
    "layers": ("model.num_layers",),
    "hidden": ("model.hidden_size",),
    "ffn": ("model.ffn_hidden_size",),
    "heads": ("model.num_attention_heads",),
    "query_groups": ("model.num_query_groups",),
    "vocab": ("tokenizer.vocab_size",),
    "seq_len": ("model.seq_length", "dataset.sequence_length"),
}
"""Keys of Megatron-Bridge's configuration for each size of a model."""

WRAPPER = "numa_rank_wrapper.sh"


def train_phase(run: Run[Any]) -> Phase:
    """Return the training phase. The overrides of the spec come last, so they take precedence."""
    fetched = Repository.of(run.settings)
    names = {"repository": fetched.folder(run.paths.cache)} if fetched else {}
    recipe = run.settings.get("overrides", {})
    overrides = {**recipe, **_model_sizes(run), **_spec_overrides(run), **_capture(run), **run.options.config}
    report = f"{run.paths.run}/nsys_profile/profile_{run.id}"
    command = (
        *(Nsys.of(run.settings).words(run, report) if run.profile else ()),
        *("bash", f"{run.paths.run}/{WRAPPER}"),
        *with_paths(run.settings["command"], run.paths, names=names),
        *run.settings["arguments"],
        *_arguments(run),
        *key_values(with_paths(overrides, run.paths, names=names)),
    )
    outputs = Nsys.of(run.settings).reports(run, report) if run.profile else ()
    return Phase(name="train", command=command, env=FrozenMap(_wrapper_env(run)), outputs=outputs)


def _arguments(run: Run[Any]) -> list[str]:
    """Return the arguments of the script: those that its release accepts and that have a value in this run."""
    values: dict[str, Any] = {
        "gpu_type": run.gpu_type,
        "gpus": run.gpus,
        "gpus_per_node": run.gpus_per_node,
        "steps": run.steps,
        "compute_dtype": run.settings.get("compute_dtype"),
        "fp8_recipe": run.settings.get("fp8_recipe"),
        "config_file": f"{run.paths.run}/{run.settings.get('config_file')}",
        "fsdp": "true" if run.parallelism.fsdp > 1 and not run.settings.get("fsdp") else None,
        **{name: getattr(run.parallelism, name) for name in PARALLELISM},
        **{name: getattr(run.model, name) for name in ARCHITECTURE},
    }
    named = run.settings["argument_names"].items()
    return [word for name, option in named if values[name] is not None for word in (option, str(values[name]))]


def _model_sizes(run: Run[Any]) -> dict[str, int]:
    """Return the overrides for the sizes of a proxy. The script selects a published model by its name."""
    if not run.proxy or "layers" in run.settings["argument_names"]:
        return {}
    return {key: getattr(run.model, name) for name, keys in ARCHITECTURE.items() for key in keys}


def _spec_overrides(run: Run[Any]) -> dict[str, Any]:
    """Return the overrides for values of the spec that the script has no argument for."""
    names = run.settings["argument_names"]
    overrides: dict[str, Any] = {} if "steps" in names else {"train.train_iters": run.steps}
    chosen = run.parallelism.pp > 1 or "parallelism.vp" in run.differences
    if chosen and run.parallelism.vp is None and "vp" in names and "config_file" not in names:
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
    fetched = Repository.of(run.settings)
    if fetched:
        env["SCRIPTS"] = f"{fetched.folder(run.paths.cache)}/{run.settings['scripts']}"
    return env
