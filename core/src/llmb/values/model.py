"""What is trained, how it is divided over GPUs, and on which accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb.values.frozen import FrozenMap, frozen_fields

FlopFormula = Literal["full", "causal", "full-without-gqa"]


@attrs.frozen(kw_only=True)
class Model:
    """A decoder-only transformer.

    ``flops_vocab`` is the vocabulary that the publisher's FLOP formula uses where that is not the model's own;
    ``gated`` tells a gated MLP (three matrices) from a plain one (two). ``embedding_and_loss_as_layers``: the
    framework counts both as one layer each when it divides the layers among pipeline stages (126 + 2 = 128).
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    query_groups: int
    vocab: int
    seq_len: int
    experts: int = 1
    top_k: int = 1
    gated: bool = True
    flops_vocab: int | None = None
    embedding_and_loss_as_layers: bool = False


@attrs.frozen(kw_only=True)
class Parallelism:
    """Degrees of parallelism; 1 is off. ``vp`` is null without interleaved pipeline stages, ``fsdp`` counts shards."""

    tp: int = 1
    pp: int = 1
    vp: int | None = None
    cp: int = 1
    ep: int = 1
    etp: int = 1
    fsdp: int = 1
    micro_batch_size: int = 1
    global_batch_size: int

    def data_parallel(self, gpus: int) -> int:
        """Replicas over which a global batch is divided: gpus / (tp pp cp)."""
        return gpus // (self.tp * self.pp * self.cp)

    def gradient_accumulation(self, gpus: int) -> int:
        """Micro batches that one replica runs per step: global batch / (micro batch x data parallel)."""
        return self.global_batch_size // (self.micro_batch_size * self.data_parallel(gpus))


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Accelerator:
    """A GPU type (or ``cpu``).

    ``peak_flops`` is the dense peak by dtype in FLOP/s, empty where it must be measured; ``dtypes`` are those it has,
    where not stated those with a peak; ``domain_gpus`` counts the GPUs of an NVLink domain that is wider than one node.
    """

    name: str
    gpus_per_node: int
    peak_flops: Mapping[str, float] = attrs.field(factory=FrozenMap)
    dtypes: tuple[str, ...] = attrs.field()
    memory_gb: float | None = None
    domain_gpus: int | None = None
    source: str = ""

    @dtypes.default
    def _with_a_peak(self) -> tuple[str, ...]:
        return tuple(self.peak_flops)
