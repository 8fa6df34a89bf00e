"""The trained model, its division over GPUs, and accelerators."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs

from llmb.values.copy_with_changes import with_changes
from llmb.values.frozen import FrozenMap
from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import Fraction, NonNegativeInt, PeakFlops, PositiveFloat, PositiveInt
from llmb.values.types.words_and_addresses import NonEmptyStr

FlopFormula = Literal[
    "full", "causal", "full-without-gqa", "megatron-bridge-0.1", "megatron-bridge-0.5", "megatron-bridge-lora"
]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class MultiLatentAttention:
    """The sizes of multi-head latent attention: keys and values are projected from one narrow vector per token."""

    q_rank: PositiveInt | None = None
    """Width of the compressed queries. Default: not compressed."""
    kv_rank: PositiveInt
    """Width of the compressed keys and values."""
    head_size: PositiveInt
    """Elements of a key without position."""
    rope_head_size: PositiveInt
    """Elements of a key with rotary position."""
    value_head_size: PositiveInt
    """Elements of a value."""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Mamba:
    """The sizes of Mamba 2 layers: heads and their size, groups that share B and C, and the state of a channel."""

    heads: PositiveInt
    """Heads."""
    head_size: PositiveInt
    """Size of a head."""
    groups: PositiveInt
    """Groups that share B and C."""
    state: PositiveInt
    """State of a channel."""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Packing:
    """Short texts that share a sequence. A token attends to its own text alone.

    ``length`` is the sum of the squared lengths of all texts divided by the sum of their lengths.
    """

    fill: Fraction
    """Share of a sequence that contains text. The rest is padding."""
    length: PositiveFloat
    """Mean length of the text of a token, in tokens."""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Model:
    """A decoder-only language model: a transformer, or a hybrid of Mamba, attention and MLP layers.

    Models with ``mla`` ignore ``head_size``. With ``sliding_window``, every ``full_attention_every``-th layer has no
    window. A token passes through ``top_k`` of the ``experts`` and through all shared experts. The layers of one depth
    of multi-token prediction are ``mtp_pattern`` in a hybrid, otherwise one layer of the kind of the last layer.

    With ``embedding_and_loss_as_layers``, 126 layers are divided among the pipeline stages as 128. With
    ``uneven_stages``, some stages have one layer more than others.
    """

    layers: PositiveInt
    """Layers."""
    hidden: PositiveInt
    """Hidden size."""
    ffn: PositiveInt
    """Hidden size of the MLP."""
    heads: PositiveInt
    """Attention heads."""
    query_groups: PositiveInt
    """Heads of keys and values."""
    vocab: PositiveInt
    """Vocabulary."""
    seq_len: PositiveInt
    """Tokens in a sequence."""
    head_size: PositiveInt | None = None
    """Size of an attention head. Default: hidden / heads."""
    mla: MultiLatentAttention | None = None
    """Sizes of multi-head latent attention. Default: none."""
    sliding_window: PositiveInt | None = None
    """Tokens that a token attends to, itself included. Default: all."""
    full_attention_every: PositiveInt | None = None
    """Distance between layers without a sliding window. Default: none."""
    experts: PositiveInt = 1
    """Experts of each layer."""
    top_k: PositiveInt = 1
    """Experts for each token."""
    expert_ffn: PositiveInt | None = None
    """Hidden size of an expert. Default: ffn."""
    shared_expert_ffn: NonNegativeInt = 0
    """Hidden size of all shared experts together."""
    dense_layers: NonNegativeInt = 0
    """First layers, which have no experts."""
    latent_size: PositiveInt | None = None
    """Size of the vectors of routed experts. Default: hidden."""
    gated: bool = True
    """The MLP is gated: three matrices instead of two."""
    activation: NonEmptyStr = "silu"
    """Activation function of the MLP."""
    layer_pattern: NonEmptyStr | None = None
    """One letter for each layer of a hybrid: M (Mamba), * (attention), - (MLP) or E (experts). Default: all
    layers are equal.
    """
    mamba: Mamba | None = None
    """Sizes of the Mamba layers. Default: none."""
    mtp_depth: NonNegativeInt = 0
    """Additional tokens of multi-token prediction."""
    mtp_pattern: NonEmptyStr | None = None
    """Layers of one depth of multi-token prediction, as in layer_pattern. Default: one layer."""
    flops_vocab: PositiveInt | None = None
    """Vocabulary of the publisher's FLOP formula. Default: vocab."""
    vocab_divisor: PositiveInt | None = None
    """The framework pads the vocabulary to a multiple of this number x tp. Default: no padding."""
    packing: Packing | None = None
    """Short texts that share a sequence. Default: none."""
    embedding_and_loss_as_layers: bool = False
    """The framework counts embedding and loss as one layer each when it divides layers among pipeline stages."""
    uneven_stages: bool = False
    """The framework accepts a number of layers that the pipeline stages do not divide."""


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
        """Return a copy with other degrees. A ``vp`` of 1 becomes None.

        Another number of stages drops a published layout.
        """
        vp = {"vp": None} if degrees.get("vp") == 1 else {}
        changed = with_changes(self, **{**degrees, **vp})
        keeps_layout = (changed.pp, changed.vp) == (self.pp, self.vp) or "pipeline_layout" in degrees
        return changed if keeps_layout else with_changes(changed, pipeline_layout=None)


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Accelerator:
    """A GPU type, or ``cpu``.

    ``peak_flops`` is the dense peak by dtype in FLOP/s; it is empty if the peak must be measured. ``dtypes`` are by
    default the dtypes with a peak. ``domain_gpus`` is the number of GPUs in an NVLink domain that is wider than one
    node.
    """

    name: NonEmptyStr
    gpus_per_node: PositiveInt
    peak_flops: Mapping[str, PeakFlops] = attrs.field(factory=FrozenMap)
    dtypes: tuple[str, ...] = attrs.field(
        default=attrs.Factory(lambda accelerator: tuple(accelerator.peak_flops), takes_self=True)
    )
    memory_gb: PositiveFloat | None = None
    domain_gpus: PositiveInt | None = None
    source: str = ""


def proxy_note(model: Model | None, published: Model | None) -> str:
    """Return a note if a model is not the recipe's, so that no result is mistaken for the complete model, else ""."""
    if model is None or published is None or model == published:
        return ""
    sizes = [f"{model.layers} of {published.layers} layers"]
    sizes += [f"hidden size {model.hidden} of {published.hidden}"] if model.hidden != published.hidden else []
    sizes += [f"sequences of {model.seq_len} tokens"]
    if (model.layers, model.hidden) == (published.layers, published.hidden):
        names = [field.name for field in attrs.fields(Model) if field.name not in ("seq_len", "flops_vocab")]
        changed = [name for name in names if getattr(model, name) != getattr(published, name)]
        sizes += [f"changed: {', '.join(changed)}"] if changed else []
    return f"proxy: the model is not the recipe's ({', '.join(sizes)})"
