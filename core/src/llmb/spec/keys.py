"""The tables and keys of a workload spec: one attrs class for each table with keys of the core."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from llmb.values.error_text import nearest_name
from llmb.values.frozen import FrozenMap
from llmb.values.run import Profile, Sampling
from llmb.values.scalars import Duration, Fraction, ImageAddress, PositiveInt, VariableName


@attrs.frozen(kw_only=True)
class WorkloadTable:
    """[workload]: the recipe, the GPUs and the number of runs. ``steps`` defaults to the recipe's number."""

    recipe: str
    gpu_type: str
    dtype: str
    gpus: PositiveInt
    variant: str | None = None
    steps: PositiveInt | None = None
    repeats: PositiveInt | None = None
    image: ImageAddress | None = None
    time_limit: Duration | None = None


@attrs.frozen(kw_only=True)
class ParallelismTable:
    """[parallelism]: each key overrides the recipe's value. 1 is off, for ``vp`` too."""

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
    """[model]: each key overrides the recipe's value, for proxies."""

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
    """[measure]: the measuring window, and how far a step time may exceed the baseline, as a fraction."""

    window: Literal["last"] | tuple[int, int] | None = None
    tolerance: Fraction | None = None


@attrs.frozen(kw_only=True)
class TargetTable:
    """[target]: the keys that the core reads. The scheduler plugin reads the other keys.

    ``env`` and ``mounts`` are for every job on the target. ``secrets`` are variables of llmb's environment for them.
    """

    scheduler: str
    name: str | None = None
    host: str | None = None
    workdir: str | None = None
    shared: bool = False
    max_jobs: PositiveInt | None = None
    gpus_per_node: PositiveInt | None = None
    env: Mapping[str, str] = FrozenMap()
    mounts: Mapping[str, str] = FrozenMap()
    secrets: tuple[VariableName, ...] = ()


@attrs.frozen(kw_only=True)
class SpecTables:
    """The valid values of one run's spec, without [framework] and [target], which plugins read too."""

    workload: WorkloadTable
    parallelism: ParallelismTable
    model: ModelTable
    measure: MeasureTable
    profile: Profile | None
    telemetry: Sampling | None
    env: Mapping[str, str]
    mounts: Mapping[str, str]
    gpus_per_node: int | None


SWEPT_KEYS = ("recipe", "gpu_type", "dtype", "gpus", "variant")
"""The keys of [workload] that may be lists. Any other key is swept in [sweep]."""

TABLES: Mapping[str, Any] = {
    "workload": WorkloadTable,
    "parallelism": ParallelismTable,
    "model": ModelTable,
    "framework": None,
    "env": None,
    "mounts": None,
    "profile": Profile,
    "telemetry": Sampling,
    "measure": MeasureTable,
    "target": TargetTable,
}
"""The tables of one run's spec. Tables whose keys the core does not know have no class."""


def nearest_key(name: str, tables: Iterable[str] = ()) -> str | None:
    """Return the table or key that was probably meant by an unknown table: a key of that name first."""
    keys = {field.name: f"{table}.{field.name}" for table, cls in TABLES.items() if cls for field in attrs.fields(cls)}
    found = nearest_name(name, keys)
    return keys.get(name) or nearest_name(name, tables) or (keys[found] if found else None)
