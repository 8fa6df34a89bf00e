"""torchtitan's job configuration: the tables of the recipe and the spec, and those that the run determines."""

from __future__ import annotations

from typing import Any

from llmb import Run, merged, with_paths


def job_config(run: Run[Any], checkout: str) -> dict[str, Any]:
    """Return the tables of the recipe, overridden by those of the spec and then by the values of the run.

    ``{checkout}`` in a string is replaced by the folder of torchtitan.
    """
    tables = merged(run.settings["config"], run.options.config)
    return dict(with_paths(merged(tables, _run_tables(run)), run.paths, names={"checkout": checkout}))


def _run_tables(run: Run[Any]) -> dict[str, Any]:
    """Return the tables with folders, batch and parallelism.

    The sequence is sharded over cp and the parameters over fsdp x cp. The remaining GPUs are replicas.
    """
    parallelism = run.parallelism
    return {
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
            "data_parallel_shard_degree": parallelism.fsdp,
            "data_parallel_replicate_degree": parallelism.data_parallel(run.gpus) // parallelism.fsdp,
        },
    }
