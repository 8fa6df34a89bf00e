"""Words of other tools for the keys of a spec, so that an error about an unknown key names the key that was meant."""

from collections.abc import Mapping

import attrs

from llmb.values.errors import Fault
from llmb.values.texts.error_text import UNKNOWN_KEY

_WORDS = {
    "workload.recipe": "model framework",
    "workload.gpu_type": "gpu_model gpu_name accelerator",
    "workload.dtype": "precision data_type",
    "workload.gpus": "nodes num_nodes nnodes world_size num_gpus",
    "workload.steps": "max_steps iterations",
    "workload.image": "container container_image",
    "workload.time_limit": "time timeout walltime",
    "parallelism.tp": "tp_size tensor_parallel tensor_parallel_size",
    "parallelism.pp": "pp_size pipeline_parallel pipeline_parallel_size",
    "parallelism.vp": "vpp virtual_pipeline virtual_pipeline_parallel_size",
    "parallelism.cp": "cp_size context_parallel context_parallel_size",
    "parallelism.ep": "ep_size expert_parallel expert_parallel_size",
    "parallelism.etp": "expert_tensor_parallel expert_tensor_parallel_size",
    "parallelism.micro_batch_size": "mbs micro_batch",
    "parallelism.global_batch_size": "gbs global_batch batch_size",
    "model.layers": "num_layers num_hidden_layers n_layers",
    "model.hidden": "hidden_size d_model",
    "model.ffn": "ffn_hidden_size intermediate_size",
    "model.heads": "num_heads num_attention_heads n_heads",
    "model.query_groups": "num_query_groups num_key_value_heads kv_heads",
    "model.vocab": "vocab_size",
    "model.seq_len": "seq_length sequence_length context_length max_position_embeddings",
    "model.head_size": "head_dim",
    "model.experts": "num_experts",
    "model.top_k": "topk num_experts_per_tok",
}
"""For each key, the words of the field for it, separated by blanks. Plugins add those of their own configuration."""

WORDS: Mapping[str, str] = {word: key for key, words in _WORDS.items() for word in words.split()}

DATA_PARALLEL = ("dp", "data_parallel", "data_parallel_size")

FRAMEWORK_TABLES = ("", "workload", "parallelism", "model", "framework")
"""The tables in which users may write keys of the framework's own configuration; "" is the top of a spec."""

KeyHints = Mapping[str, Mapping[str, str]]
"""For each table, the key of the spec that is meant by each word."""


def merge_key_hints(scheduler: Mapping[str, str], framework: Mapping[str, str]) -> KeyHints:
    """Return the ``key_hints`` of the run's plugins with those of core, by the tables in which they are looked up."""
    of_framework = {**WORDS, **_last_parts(framework)}
    return {"target": {**WORDS, **_last_parts(scheduler)}} | dict.fromkeys(FRAMEWORK_TABLES, of_framework)


def _last_parts(hints: Mapping[str, str]) -> dict[str, str]:
    """Return hints by the last part of each key, with underscores, without keys that none or a whole table sets."""
    return {
        key.rpartition(".")[2].replace("-", "_"): meant
        for key, meant in hints.items()
        if meant and not meant.startswith("[")
    }


def add_key_hint(error: Fault, hints: KeyHints) -> Fault:
    """Return the error of an unknown key with the key that is meant, if any. A misspelt table stays one."""
    if error.message != UNKNOWN_KEY or not error.key:
        return error
    table, _, word = error.key.rpartition(".")
    if table == "parallelism" and word in DATA_PARALLEL:
        message = f"{UNKNOWN_KEY}, because it is the number of GPUs divided by the other degrees"
        return attrs.evolve(error, message=message, expected=None, nearest=None)
    meant = hints.get(table, {}).get(word.replace("-", "_"))
    if meant is None or (error.nearest and not table):
        return error
    return attrs.evolve(error, nearest=meant.removeprefix(f"{table}."))
