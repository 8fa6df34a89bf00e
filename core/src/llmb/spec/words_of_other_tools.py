"""Words of other tools for the keys of a spec, so that an error about an unknown key names the key that was meant."""

from collections.abc import Mapping

import attrs

from llmb.values.errors import Fault
from llmb.values.texts.error_text import UNKNOWN_KEY

WORDS: Mapping[str, Mapping[str, str]] = {
    "workload": {
        "recipe": "model model_name framework",
        "gpu_type": "gpu_model gpu_name accelerator",
        "dtype": "precision data_type",
        "gpus": "nodes num_nodes nnodes world_size num_gpus",
        "steps": "max_steps iterations train_iters train_steps",
        "image": "container container_image",
        "time_limit": "time timeout walltime",
    },
    "parallelism": {
        "tp": "tp_size tensor tensor_parallel tensor_parallel_size tensor_model_parallel_size ici_tensor_parallelism",
        "pp": "pp_size pipeline pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size",
        "vp": "vpp virtual_pipeline virtual_pipeline_model_parallel_size",
        "cp": "cp_size context context_parallel context_parallel_size ici_context_parallelism",
        "ep": "ep_size expert expert_parallel expert_parallel_size expert_model_parallel_size ici_expert_parallelism",
        "etp": "expert_tensor_parallel expert_tensor_parallel_size",
        "fsdp": "fsdp_size data_parallel_shard_degree ici_fsdp_parallelism",
        "micro_batch_size": "mbs micro_batch per_device_batch_size",
        "global_batch_size": "gbs global_batch batch_size",
    },
    "model": {
        "layers": "num_layers num_hidden_layers n_layers base_num_decoder_layers",
        "hidden": "hidden_size d_model base_emb_dim",
        "ffn": "ffn_hidden_size intermediate_size base_mlp_dim",
        "heads": "num_attention_heads num_heads n_heads base_num_query_heads",
        "query_groups": "num_query_groups num_key_value_heads kv_heads base_num_kv_heads",
        "vocab": "vocab_size",
        "seq_len": "seq_length sequence_length max_position_embeddings max_target_length context_length",
        "experts": "num_experts num_moe_experts",
        "top_k": "topk moe_router_topk num_experts_per_tok",
    },
}
"""For each key of a table, words of frameworks, launchers and model files for it, separated by blanks."""

KEYS = {
    f"{table}.{word}": key for table, keys in WORDS.items() for key, words in keys.items() for word in words.split()
}

KEYS_WITH_TABLES = {
    dotted.partition(".")[2]: f"{dotted.partition('.')[0]}.{key}" for dotted, key in reversed(KEYS.items())
}
"""The keys with their tables, by word. Of several tables, the first counts."""

DATA_PARALLEL = ("dp", "data_parallel", "data_parallel_size", "ici_data_parallelism")


def with_key_meant(error: Fault) -> Fault:
    """Return the error of an unknown key with the key that other tools call so, if any."""
    if error.message != UNKNOWN_KEY or not error.key:
        return error
    table, _, word = error.key.partition(".")
    if table == "parallelism" and word in DATA_PARALLEL:
        message = f"{UNKNOWN_KEY}, because it is the number of GPUs divided by the other degrees"
        return attrs.evolve(error, message=message, expected=None, nearest=None)
    if not word:
        return attrs.evolve(error, nearest=error.nearest or KEYS_WITH_TABLES.get(table))
    return attrs.evolve(error, nearest=KEYS.get(error.key, error.nearest))
