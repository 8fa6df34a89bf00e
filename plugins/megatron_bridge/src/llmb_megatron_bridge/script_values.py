"""Values of a run by the names that recipes use: for the arguments of the script and for rules of the environment."""

from collections.abc import Mapping
from typing import Any

from llmb import Run

PARALLELISM = ("tp", "pp", "vp", "cp", "ep", "etp", "micro_batch_size", "global_batch_size", "pipeline_layout")

SIZES = (
    *("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len", "experts", "top_k", "expert_ffn"),
    "dense_layers",
)

PERFORMANCE = ("cuda_graph_impl", "cuda_graph_scope", "recompute_modules", "dispatcher")
"""Settings of a point that an option of [framework] with the same name replaces."""

JOB = (
    *("gpu_type", "gpus", "gpus_per_node", "steps", "compute_dtype", "fp8_recipe", "config_file"),
    "resolved_config",
)
"""Values that the script always needs. From these, the scripts since 26.x compute the other values by themselves."""


def script_values(run: Run[Any]) -> dict[str, Any]:
    """Return the values by name. None means that the run has no such value."""
    model, options, settings = run.model, run.options, run.settings
    return {
        "gpu_type": run.gpu_type,
        "gpus": run.gpus,
        "gpus_per_node": run.gpus_per_node,
        "steps": run.steps,
        "compute_dtype": settings.get("compute_dtype"),
        "fp8_recipe": settings.get("fp8_recipe"),
        "config_file": f"{run.paths.run}/{settings.get('config_file')}",
        "resolved_config": f"{run.paths.run}/ConfigContainer.yaml",
        "fsdp": "true" if run.parallelism.fsdp > 1 and not settings.get("fsdp") else None,
        "a2a_overlap": bool(settings.get("a2a_overlap")),
        **{name: getattr(run.parallelism, name) for name in PARALLELISM},
        **{name: getattr(model, name) for name in SIZES},
        **{name: getattr(options, name) or settings.get(name) for name in PERFORMANCE},
    }


def passed_names(run: Run[Any], values: Mapping[str, Any]) -> set[str]:
    """Return the names of the values that the script gets as arguments. ``values`` are those of the run.

    Without ``passed`` in the recipe, the script gets all values. ``passed`` has the values that the publisher's
    launcher passes at this point, besides those of the job. The script gets each value that the spec changes, too.
    """
    known = {name for name, value in values.items() if value is not None}
    if "passed" not in run.settings:
        return known
    changed = {key.rpartition(".")[2] for key in run.differences}
    wanted = {*JOB, *run.settings["passed"], *changed, *_computed_names(run)}
    return wanted & {*known, "vp"}  # "None" is a value of vp: no interleaved stages


def _computed_names(run: Run[Any]) -> set[str]:
    """Return the names of the values that no published point has, because the run has other GPUs than any point."""
    if not {"workload.gpus", "workload.gpu_type"} & set(run.differences):
        return set()
    model, published = run.model, run.published_model
    sizes = {name for name in SIZES if getattr(model, name) != getattr(published, name)}
    return {*PARALLELISM, "fsdp"} | sizes
