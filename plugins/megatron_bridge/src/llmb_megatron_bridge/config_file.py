"""The configuration file of the scripts of release 25.10, which take from it what they have no argument for."""

from __future__ import annotations

import json
from typing import Any

from llmb import Run, with_paths


def config_file(run: Run[Any]) -> str:
    """YAML (written as JSON, which is YAML too): the recipe's ConfigContainer, and this run's own performance matrix.

    The published file has a matrix of one number of GPUs for each GPU type, from which the script extrapolates. This
    one has the run and nothing else, so that whatever a spec overrides is what is run.
    """
    config = with_paths(run.settings["config"], run.paths)
    config["model"]["seq_length"] = run.model.seq_len
    matrix = {run.gpu_type: {f"num_gpus_{run.gpus}": {"common": _matrix(run)}}}
    return json.dumps({"ConfigContainer": config, "perf_matrix": matrix}, indent=2) + "\n"


def _matrix(run: Run[Any]) -> dict[str, Any]:
    parallelism = run.parallelism
    matrix = {
        "num_gpus_per_node": run.gpus_per_node,
        "seq_length": run.model.seq_len,
        "mbs": parallelism.micro_batch_size,
        "gbs": parallelism.global_batch_size,
        "tp": parallelism.tp,
        "pp": parallelism.pp,
        "vp": parallelism.vp,
        "cp": parallelism.cp,
        "ep": parallelism.ep,
        "etp": None,
        "cuda_graphs": run.cuda_graphs,
        "use_megatron_fsdp": parallelism.fsdp > 1,
    }
    if run.recompute_layers:
        matrix["recompute_num_layers"] = run.recompute_layers
    if run.offload_layers:
        matrix["cpu_offloading_num_layers"] = run.offload_layers
    return matrix
