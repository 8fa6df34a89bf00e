"""Options of Megatron-Bridge in [framework]."""

from typing import Literal

import attrs

from llmb import ConfigOverrides, Duration, FrozenMap

COMPARABLE = {"comparable": True}  # neither where weights and tokenizer come from nor their preparation changes a step
GraphScope = Literal["full_iteration", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"]
RecomputedModule = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]


@attrs.frozen(kw_only=True)
class BridgeOptions:
    """Options in [framework]."""

    fp8_recipe: Literal["cs", "mx", "sc"] | None = None
    """FP8 scaling, as `workload.variant = "cs"`, `"mxfp8"` or `"sc"`. Default: the recipe's. Example: ``"mx"``"""
    cuda_graph_impl: Literal["none", "local", "transformer_engine"] | None = None
    """How CUDA graphs are captured. This and the next three need release 26.06. Default: the recipe's.
    Example: ``"local"``
    """
    cuda_graph_scope: tuple[GraphScope, ...] | None = None
    """Parts in a graph: `full_iteration`, or several of the others. Default: the recipe's.
    Example: ``["full_iteration"]``
    """
    recompute_modules: tuple[RecomputedModule, ...] | None = None
    """Modules to recompute in the backward pass. Default: the recipe's. Example: ``["moe_act"]``"""
    dispatcher: Literal["alltoall", "hybridep", "deepep"] | None = None
    """How tokens reach their experts; also sets the environment that HybridEP or DeepEP needs. Default: the
    recipe's. Example: ``"hybridep"``
    """
    config: ConfigOverrides = attrs.field(factory=FrozenMap)
    """Overrides of Megatron-Bridge's configuration; they take precedence over the recipe. Keys that other tables
    of the spec set, keys that the script sets after the overrides, keys of unknown tables, and keys that would
    replace a table are errors. Default: empty. Example: ``{ "optimizer.lr" = 1e-4 }``
    """
    vboost: bool = False
    """Gives the tensor cores priority for power, with `sudo nvidia-smi` on each node before the training.
    Example: ``true``
    """
    hf_token: bool | None = attrs.field(default=None, metadata=COMPARABLE)
    """Whether the run needs HF_TOKEN; set it to false if `cache/huggingface` already contains the files.
    Default: the recipe's. Example: ``false``
    """
    checkpoint: str | None = attrs.field(default=None, metadata=COMPARABLE)
    """Folder of a Megatron checkpoint from which a run starts that fine-tunes. Default: a task converts the recipe's
    model once, into the cache. Example: ``"/lustre/me/llama3-70b"``
    """
    preparation_time_limit: Duration | None = attrs.field(default=None, metadata=COMPARABLE)
    """Time limit of each job that prepares the checkpoint and the data of such a run. Default: the recipe's.
    Example: ``"3h"``
    """
