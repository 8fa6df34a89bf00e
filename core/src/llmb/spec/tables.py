"""The tables of a workload spec, as its author writes them: one attrs class each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from llmb.spec.scalars import Duration, Fraction, PositiveInt
from llmb.values.run import Profile


@attrs.frozen(kw_only=True)
class WorkloadTable:
    """[workload]: which recipe, on what, how often. Where ``steps`` is absent, the recipe's number is run."""

    recipe: str
    gpu_type: str
    dtype: str
    gpus: PositiveInt
    steps: PositiveInt | None = None
    repeats: PositiveInt | None = None
    image: str | None = None
    time_limit: Duration | None = None


@attrs.frozen(kw_only=True)
class ParallelismTable:
    """[parallelism]: each key overrides the recipe's. 1 switches a thing off, for vp too."""

    tp: PositiveInt | None = None
    pp: PositiveInt | None = None
    vp: PositiveInt | None = None
    cp: PositiveInt | None = None
    ep: PositiveInt | None = None
    etp: PositiveInt | None = None
    fsdp: PositiveInt | None = None
    micro_batch_size: PositiveInt | None = None
    global_batch_size: PositiveInt | None = None


@attrs.frozen(kw_only=True)
class ModelTable:
    """[model]: each key overrides the recipe's, for proxies."""

    layers: PositiveInt | None = None
    hidden: PositiveInt | None = None
    ffn: PositiveInt | None = None
    heads: PositiveInt | None = None
    query_groups: PositiveInt | None = None
    vocab: PositiveInt | None = None
    seq_len: PositiveInt | None = None
    experts: PositiveInt | None = None
    top_k: PositiveInt | None = None


@attrs.frozen(kw_only=True)
class MeasureTable:
    """[measure]: the measuring window, and the fraction by which a step time may lie above the baseline (0.05)."""

    window: Literal["last"] | tuple[int, int] | None = None
    tolerance: Fraction | None = None


@attrs.frozen(kw_only=True)
class TargetTable:
    """[target]: the keys that the core reads; the others are the scheduler plugin's."""

    scheduler: str
    name: str | None = None
    host: str | None = None
    workdir: str | None = None
    gpus_per_node: PositiveInt | None = None


@attrs.frozen(kw_only=True)
class SpecTables:
    """One run's spec, without what the plugins' own classes check, and what only the target is made of."""

    workload: WorkloadTable
    parallelism: ParallelismTable
    model: ModelTable
    measure: MeasureTable
    profile: Profile | None
    env: Mapping[str, str]
    mounts: Mapping[str, str]
    gpus_per_node: int | None
