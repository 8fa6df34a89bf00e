"""MaxText's ``key=value`` arguments: the recipe's, then those that model, batch and device mesh determine."""

import math
from typing import Any

from llmb import Run, with_paths

MODEL_ARGUMENTS = {
    "base_emb_dim": "hidden",
    "base_num_query_heads": "heads",
    "base_num_kv_heads": "query_groups",
    "base_mlp_dim": "ffn",
    "base_num_decoder_layers": "layers",
    "vocab_size": "vocab",
}
"""MaxText's arguments for sizes of the model, each with the key of [model]."""


def maxtext_arguments(run: Run[Any]) -> dict[str, Any]:
    """Return the arguments of a training phase, except run name, steps and the options of the spec."""
    given = with_paths(run.settings.get("config", {}), run.paths)
    derived = {
        **_batch_arguments(run),
        "max_target_length": run.model.seq_len,
        **_mesh_arguments(run),
    }
    if "model_name" not in given:
        derived |= _model_arguments(run)
    elif run.proxy:
        derived |= {**_model_arguments(run), "override_model_config": True}
    return {**given, **derived}


def _batch_arguments(run: Run[Any]) -> dict[str, float]:
    """Return the batch size of each device and, if above 1, the number of gradient accumulation steps."""
    passes = run.parallelism.gradient_accumulation(run.gpus)
    share = run.parallelism.global_batch_size / (passes * run.gpus)
    accumulation = {"gradient_accumulation_steps": passes} if passes > 1 else {}
    return {"per_device_batch_size": int(share) if share.is_integer() else share, **accumulation}


def _mesh_arguments(run: Run[Any]) -> dict[str, int]:
    """Return the size of each mesh axis within a node (ICI) and across nodes (DCN).

    Tensor parallelism and as many FSDP shards as fit stay within a node. The remaining shards and all replicas are
    across nodes. On CPUs MaxText does not distinguish nodes, so every axis is within one node.
    """
    tp, fsdp, inside = run.parallelism.tp, run.parallelism.fsdp, devices_per_node(run)
    fsdp_inside = math.gcd(fsdp, inside // tp)
    fsdp_across = fsdp // fsdp_inside
    return {
        "ici_tensor_parallelism": tp,
        "ici_fsdp_parallelism": fsdp_inside,
        "ici_data_parallelism": inside // (tp * fsdp_inside),
        "dcn_fsdp_parallelism": fsdp_across,
        "dcn_data_parallelism": run.gpus // (inside * fsdp_across),
    }


def devices_per_node(run: Run[Any]) -> int:
    """Return the number of devices that the ICI axes of the mesh cover."""
    return run.gpus if run.gpu_type == "cpu" else run.gpus_per_node


def _model_arguments(run: Run[Any]) -> dict[str, int]:
    model = run.model
    sizes = {argument: getattr(model, size) for argument, size in MODEL_ARGUMENTS.items()}
    return {**sizes, "head_dim": model.head_size or model.hidden // model.heads}
