"""torchtitan's job configuration: the tables of the recipe and the spec, and those that the run determines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmb import Run, merge_tables, with_paths


def job_config(run: Run[Any], folders: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of the recipe, overridden by those of the spec and then by the values of the run.

    ``{checkout}``, ``{dataset}`` and ``{tokenizer}`` in a string are replaced by these folders.
    """
    return dict(with_paths(merge_tables(chosen_tables(run), _run_tables(run, folders)), run.paths, names=folders))


def chosen_tables(run: Run[Any]) -> Mapping[str, Any]:
    """Return the tables of the recipe, overridden by those of the spec."""
    return merge_tables(run.settings["config"], run.options.config)


def log_interval(run: Run[Any]) -> int | None:
    """Return the number of steps from one printed step to the next, or None if the value is invalid."""
    interval = chosen_tables(run)["metrics"]["log_freq"]
    return interval if type(interval) is int and interval > 0 else None  # isinstance would accept true


def _run_tables(run: Run[Any], folders: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables with folders, batch and parallelism.

    The sequence is sharded over cp and the parameters over fsdp x cp. The remaining GPUs are replicas.
    """
    parallelism = run.parallelism
    tables: dict[str, dict[str, Any]] = {
        "job": {"description": run.name, "dump_folder": "{run}/output"},
        "training": {
            "steps": run.steps,
            "seq_len": run.model.seq_len,
            "local_batch_size": parallelism.micro_batch_size,
            "global_batch_size": parallelism.global_batch_size,
        },
        "parallelism": {
            "tensor_parallel_degree": parallelism.tp,
            "context_parallel_degree": parallelism.cp,
            "pipeline_parallel_degree": parallelism.pp,
            "expert_parallel_degree": parallelism.ep,
            "expert_tensor_parallel_degree": parallelism.etp,
            "data_parallel_shard_degree": parallelism.fsdp,
            "data_parallel_replicate_degree": parallelism.data_parallel(run.gpus) // parallelism.fsdp,
        },
    }
    if "dataset" in folders:
        tables["training"]["dataset_path"] = "{dataset}"
    if "tokenizer" in folders:
        tables["model"] = {"hf_assets_path": "{tokenizer}"}
    return tables
