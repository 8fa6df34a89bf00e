"""The trained model, its division over GPUs, and accelerators."""

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb.values.frozen import FrozenMap
from llmb.values.scalars import NonEmptyStr, PositiveFloat, PositiveInt
from llmb.values.typed import typed_fields

FlopFormula = Literal["full", "causal", "full-without-gqa"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Model:
    """A decoder-only transformer.

    ``flops_vocab`` is the vocabulary of the publisher's FLOP formula, if it differs from the model's. ``gated`` means a
    gated MLP (three matrices) instead of a plain one (two). With ``embedding_and_loss_as_layers``, the framework counts
    embedding and loss as one layer each when it divides the layers among pipeline stages (126 + 2 = 128).
    """

    layers: PositiveInt
    hidden: PositiveInt
    ffn: PositiveInt
    heads: PositiveInt
    query_groups: PositiveInt
    vocab: PositiveInt
    seq_len: PositiveInt
    experts: PositiveInt = 1
    top_k: PositiveInt = 1
    gated: bool = True
    flops_vocab: PositiveInt | None = None
    embedding_and_loss_as_layers: bool = False


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Parallelism:
    """Degrees of parallelism; 1 is off. ``vp`` is None without interleaved stages, ``fsdp`` is the number of shards."""

    tp: PositiveInt = 1
    pp: PositiveInt = 1
    vp: PositiveInt | None = None
    cp: PositiveInt = 1
    ep: PositiveInt = 1
    etp: PositiveInt = 1
    fsdp: PositiveInt = 1
    micro_batch_size: PositiveInt = 1
    global_batch_size: PositiveInt

    def data_parallel(self, gpus: int) -> int:
        """Return the number of replicas over which a global batch is divided: gpus / (tp pp cp)."""
        return gpus // (self.tp * self.pp * self.cp)

    def gradient_accumulation(self, gpus: int) -> int:
        """Return the micro batches of one replica in a step: global batch / (micro batch x data parallel)."""
        return self.global_batch_size // (self.micro_batch_size * self.data_parallel(gpus))


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
