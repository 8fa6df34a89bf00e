"""YAML configuration file of release 25.10, for settings that its script has no arguments for."""

import json
from typing import Any

from llmb import Run, with_paths


def config_yaml(run: Run[Any]) -> str:
    """Return the recipe's ConfigContainer and the performance matrix of this run as YAML.

    The text is JSON, which is valid YAML. The published file has one number of GPUs per GPU type, and the script
    extrapolates from that entry. The returned matrix contains only this run, so overrides of the spec take effect.
    """
    config = with_paths(run.settings["config"], run.paths)
    config["model"]["seq_length"] = run.model.seq_len
    matrix = {run.gpu_type: {f"num_gpus_{run.gpus}": {"common": _matrix(run)}}}
    return json.dumps({"ConfigContainer": config, "perf_matrix": matrix}, indent=2) + "\n"


def _matrix(run: Run[Any]) -> dict[str, Any]:
    """Return the matrix entry of this run."""
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
