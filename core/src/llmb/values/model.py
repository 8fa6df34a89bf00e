"""The trained model, its division over GPUs, and accelerators."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from llmb.values.frozen import FrozenMap
from llmb.values.scalars import NonEmptyStr, NonNegativeInt, PositiveFloat, PositiveInt
from llmb.values.typed import typed_fields

FlopFormula = Literal["full", "causal", "full-without-gqa", "megatron-bridge-0.1", "megatron-bridge-0.5"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class MultiLatentAttention:
    """The sizes of multi-head latent attention (MLA): keys and values are projected from one narrow vector per token.

    ``q_rank`` and ``kv_rank`` are the widths of the compressed queries and of the compressed keys and values. A key has
    ``head_size`` elements without position and ``rope_head_size`` elements with rotary position.
    """

    q_rank: PositiveInt | None = None
    kv_rank: PositiveInt
    head_size: PositiveInt
    rope_head_size: PositiveInt
    value_head_size: PositiveInt


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Mamba:
    """The sizes of Mamba 2 layers: heads and their size, groups that share B and C, and the state of a channel."""

    heads: PositiveInt
    head_size: PositiveInt
    groups: PositiveInt
    state: PositiveInt


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Model:
    """A decoder-only language model: a transformer, or a hybrid of Mamba, attention and MLP layers.

    Attention: ``head_size`` is hidden / heads if it is None. Models with ``mla`` ignore it. With ``sliding_window``,
    a token attends to that many tokens, itself included; every ``full_attention_every``-th layer has no window.

    MLP: ``gated`` means a gated MLP (three matrices) instead of a plain one (two). A token passes through ``top_k`` of
    the ``experts``, of size ``expert_ffn`` (by default ``ffn``), and through all shared experts, which together have
    the size ``shared_expert_ffn``. The first ``dense_layers`` have no experts. Routed experts work on vectors of
    ``latent_size`` if it is not None.

    Hybrids: ``layer_pattern`` has one letter for each layer: M (Mamba), * (attention), - (MLP) or E (experts).

    Multi-token prediction: ``mtp_depth`` is the number of additional tokens. The layers of one depth are
    ``mtp_pattern`` in a hybrid, otherwise one layer of the kind of the last layer.

    Vocabulary: ``flops_vocab`` is the vocabulary of the publisher's FLOP formula, if it differs from the model's. The
    framework pads the vocabulary to a multiple of ``vocab_divisor`` x tp, or not at all if it is None.

    With ``embedding_and_loss_as_layers``, the framework counts embedding and loss as one layer each when it divides the
    layers among pipeline stages (126 + 2 = 128).
    """

    layers: PositiveInt
    hidden: PositiveInt
    ffn: PositiveInt
    heads: PositiveInt
    query_groups: PositiveInt
    vocab: PositiveInt
    seq_len: PositiveInt
    head_size: PositiveInt | None = None
    mla: MultiLatentAttention | None = None
    sliding_window: PositiveInt | None = None
    full_attention_every: PositiveInt | None = None
    experts: PositiveInt = 1
    top_k: PositiveInt = 1
    expert_ffn: PositiveInt | None = None
    shared_expert_ffn: NonNegativeInt = 0
    dense_layers: NonNegativeInt = 0
    latent_size: PositiveInt | None = None
    gated: bool = True
    activation: NonEmptyStr = "silu"
    layer_pattern: NonEmptyStr | None = None
    mamba: Mamba | None = None
    mtp_depth: NonNegativeInt = 0
    mtp_pattern: NonEmptyStr | None = None
    flops_vocab: PositiveInt | None = None
    vocab_divisor: PositiveInt | None = None
    embedding_and_loss_as_layers: bool = False


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Parallelism:
    """Degrees of parallelism; 1 is off. ``vp`` is None without interleaved stages, ``fsdp`` is the number of shards.

    ``pipeline_layout`` lists the layers of each pipeline stage if the framework does not divide them evenly, in the
    notation of Megatron-Core: E (embedding), t (decoder layer), m (multi-token prediction), L (loss), | between stages,
    ``*n`` to repeat. "Et*3|(tt|)*2mL" has four stages and seven decoder layers.
    """

    tp: PositiveInt = 1
    pp: PositiveInt = 1
    vp: PositiveInt | None = None
    cp: PositiveInt = 1
    ep: PositiveInt = 1
    etp: PositiveInt = 1
    fsdp: PositiveInt = 1
    micro_batch_size: PositiveInt = 1
    global_batch_size: PositiveInt
    pipeline_layout: NonEmptyStr | None = None

    def data_parallel(self, gpus: int) -> int:
        """Return the number of replicas over which a global batch is divided: gpus / (tp pp cp)."""
        return gpus // (self.tp * self.pp * self.cp)

    def gradient_accumulation(self, gpus: int) -> int:
        """Return the micro batches of one replica in a step: global batch / (micro batch x data parallel)."""
        return self.global_batch_size // (self.micro_batch_size * self.data_parallel(gpus))

    def with_degrees(self, degrees: Mapping[str, Any]) -> Self:
        """Return a copy with other degrees. A ``vp`` of 1 becomes None. Another number of stages drops the layout."""
        vp = {"vp": None} if degrees.get("vp") == 1 else {}
        changed = attrs.evolve(self, **{**degrees, **vp})
        same_stages = (changed.pp, changed.vp) == (self.pp, self.vp)
        return changed if same_stages else attrs.evolve(changed, pipeline_layout=None)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Accelerator:
    """A GPU type, or ``cpu``.

    ``peak_flops`` is the dense peak by dtype in FLOP/s; it is empty if the peak must be measured. ``dtypes`` are by
    default the dtypes with a peak. ``domain_gpus`` is the number of GPUs in an NVLink domain that is wider than one
    node.
    """

    name: NonEmptyStr
    gpus_per_node: PositiveInt
    peak_flops: Mapping[str, PositiveFloat] = attrs.field(factory=FrozenMap)
    dtypes: tuple[str, ...] = attrs.field()
    memory_gb: PositiveFloat | None = None
    domain_gpus: PositiveInt | None = None
    source: str = ""

    @dtypes.default
    def _with_a_peak(self) -> tuple[str, ...]:
        return tuple(self.peak_flops)


def proxy_note(model: Model | None, published: Model | None) -> str:
    """Return a note if a model is not the recipe's, so that no result is mistaken for the complete model, else ""."""
    if model is None or published is None or model == published:
        return ""
    layers = f"{model.layers} of {published.layers} layers"
    return f"proxy: the model is not the recipe's ({layers}, sequences of {model.seq_len} tokens)"
