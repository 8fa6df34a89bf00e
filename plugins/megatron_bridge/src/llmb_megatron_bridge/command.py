"""The command of one rank, from the recipe's own data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import FrozenMap, Phase, Repository, Run

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
"""Where the configuration of Megatron-Bridge holds a model's sizes."""


def repository(run: Run[Any]) -> Repository | None:
    """The repository of the training script, where the plugin does not bring one itself."""
    table = run.settings.get("repository")
    return Repository(**table) if table else None


def placed(value: Any, run: Run[Any]) -> Any:
    """A recipe's text with ``{run}``, ``{cache}`` and ``{repository}`` as the folders that they stand for."""
    if not isinstance(value, str):
        return value
    fetched = repository(run)
    folders = {"{run}": run.paths.run, "{cache}": run.paths.cache}
    if fetched:
        folders["{repository}"] = fetched.folder(run.paths.cache)
    for name, folder in folders.items():
        value = value.replace(name, folder)
    return value


def train_phase(run: Run[Any], extra: Mapping[str, Any]) -> Phase:
    """The training, of every rank; ``extra`` are overrides of the user's, after all others."""
    overrides = {**run.settings.get("overrides", {}), **_architecture(run), **_decided(run), **_profiling(run), **extra}
    command = (
        *("bash", f"{run.paths.run}/rank.sh"),
        *(placed(word, run) for word in run.settings["command"]),
        *run.settings["arguments"],
        *_arguments(run),
        *(f"{name}={text(placed(value, run))}" for name, value in overrides.items()),
    )
    return Phase(name="train", command=command, env=FrozenMap(_wrapper_env(run)))


def _arguments(run: Run[Any]) -> list[str]:
    """The script's arguments: those that its release has, and that have a value in this run."""
    values: dict[str, Any] = {
        "gpu_type": run.gpu_type,
        "gpus": run.gpus,
        "gpus_per_node": run.gpus_per_node,
        "steps": run.steps,
        "compute_dtype": run.settings.get("compute_dtype"),
        "fp8_recipe": run.settings.get("fp8_recipe"),
        "config_file": f"{run.paths.run}/{run.settings.get('config_file')}",
        **{name: getattr(run.parallelism, name) for name in PARALLELISM},
        **{name: getattr(run.model, name) for name in ARCHITECTURE},
    }
    named = run.settings["argument_names"].items()
    return [word for name, option in named if values[name] is not None for word in (option, str(values[name]))]


def _architecture(run: Run[Any]) -> dict[str, int]:
    """A proxy's sizes; what is published needs none, since the script knows the model by its name."""
    if not run.proxy or "layers" in run.settings["argument_names"]:
        return {}
    return {key: getattr(run.model, name) for name, keys in ARCHITECTURE.items() for key in keys}


def _decided(run: Run[Any]) -> dict[str, Any]:
    """What the rest of the spec decides, and the script has no argument for."""
    names = run.settings["argument_names"]
    decided: dict[str, Any] = {} if "steps" in names else {"train.train_iters": run.steps}
    own = run.parallelism.pp > 1 or "parallelism.vp" in run.differences
    if own and run.parallelism.vp is None and "vp" in names and "config_file" not in names:
        decided["model.virtual_pipeline_model_parallel_size"] = "null"  # an absent argument means the script's own
    return decided


def _profiling(run: Run[Any]) -> dict[str, Any]:
    if run.profile is None:
        return {}
    start, stop = profiled_steps(run)
    ranks = run.profile.ranks if run.profile.ranks is not None else range(run.gpus)
    return {
        "profiling.use_nsys_profiler": True,
        "profiling.profile_step_start": start,
        "profiling.profile_step_end": stop,
        "profiling.profile_ranks": f"[{','.join(map(str, ranks))}]",
        "profiling.record_shapes": False,
    }


def profiled_steps(run: Run[Any]) -> tuple[int, int]:
    """The first and last step that are captured: the spec's, else the recipe's."""
    assert run.profile is not None
    nsys, profile = run.settings["nsys"], run.profile
    start = nsys["start_step"] if profile.start_step is None else profile.start_step
    return start, nsys["stop_step"] if profile.stop_step is None else profile.stop_step


def _wrapper_env(run: Run[Any]) -> dict[str, str]:
    """What rank.sh is told."""
    env = {}
    if run.gpu_type != "cpu":
        env["NUMA_GPUS"] = str(max(1, run.accelerator.gpus_per_node // 2))  # nodes of all these GPUs have two sockets
    fetched = repository(run)
    if fetched:
        env["SCRIPTS"] = f"{fetched.folder(run.paths.cache)}/{run.settings['scripts']}"
    if run.profile is not None:
        nsys, profile = run.settings["nsys"], run.profile
        env["NSYS"] = " ".join([*nsys["command"], *(nsys["cpu"] if profile.cpu else ())])
        env["NSYS_RANKS"] = "all" if profile.ranks is None else ",".join(map(str, sorted(profile.ranks)))
        if profile.gpu_metrics:
            env["NSYS_METRICS"] = " ".join(nsys["gpu_metrics"])
    return env


def text(value: Any) -> str:
    """A value as Hydra reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
