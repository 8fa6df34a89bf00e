"""The tables and keys of a recipe file. docs/recipes.md describes them."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from llmb.recipes.scaling_rules import Condition, Rule
from llmb.values.environment import Image
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model
from llmb.values.one_or_more import one_or_more
from llmb.values.recipe import MfuSource, ProfileTool
from llmb.values.scalars import (
    Duration,
    NonEmptyStr,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    accepting,
)


def _is_step_range(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and all(type(step) is int for step in value) and 0 <= value[0] <= value[1]


def _is_published(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and (math.isnan(value) or 0 < value < math.inf)
    )


Words = Annotated[tuple[str, ...], one_or_more(NonEmptyStr, distinct=True)]
_Counts = Annotated[tuple[int, ...], one_or_more(PositiveInt, distinct=True)]
_Numbers = Annotated[tuple[float, ...], one_or_more(PositiveFloat)]
_Published = Annotated[
    float | None,
    accepting(
        "a positive number, or nan if it is not published",
        _is_published,
        lambda value: None if math.isnan(value) else float(value),
    ),
]
_PublishedNumbers = Annotated[tuple[float | None, ...], one_or_more(_Published)]
StepRange = Annotated[
    tuple[int, int], accepting("[first, last] in the framework's own step numbers", _is_step_range, tuple)
]


@attrs.frozen(kw_only=True)
class SettingsTable:
    """A table of [[settings]]: a part of [framework] for the points of these GPU types, dtypes and variants."""

    gpu_type: Words | None = None
    dtype: Words | None = None
    variant: Words | None = None
    framework: Mapping[str, Any]

    def applies(self, gpu_type: str, dtype: str, variant: str | None) -> bool:
        """Check whether the settings are for this GPU type, dtype and variant."""
        pairs = ((self.gpu_type, gpu_type), (self.dtype, dtype), (self.variant, variant))
        return all(wanted is None or value in wanted for wanted, value in pairs)


@attrs.frozen(kw_only=True)
class PointTable:
    """A table of [[points]]: every combination of gpu_type, dtype and gpus."""

    gpu_type: Words
    dtype: Words
    gpus: _Counts
    other_gpus: Condition | None = None
    variant: NonEmptyStr | None = None
    tp: Rule = 1
    pp: Rule = 1
    vp: Rule = 1
    cp: Rule = 1
    ep: Rule = 1
    etp: Rule = 1
    fsdp: Rule = 1
    micro_batch_size: Rule = 1
    global_batch_size: Rule
    pipeline_layout: NonEmptyStr | None = None
    proxy: bool = False
    recompute_layers: NonNegativeInt = 0
    offload_layers: NonNegativeInt = 0
    cuda_graphs: bool = False
    time_limit: Duration | None = None
    model: Mapping[str, Any] = FrozenMap()
    framework: Mapping[str, Any] = FrozenMap()
    options: Mapping[str, Any] = FrozenMap()


@attrs.frozen(kw_only=True)
class BaselineTable:
    """A table of [[baselines]]: one value of each column for each of gpus."""

    gpu_type: NonEmptyStr
    dtype: NonEmptyStr
    gpus: _Counts
    variant: NonEmptyStr | None = None
    step_time_s: _Numbers | None = None
    tflops_per_gpu: _Numbers | None = None
    tokens_per_s_per_gpu: _Numbers | None = None
    tokens_per_s: _PublishedNumbers | None = None
    mfu_percent: _PublishedNumbers | None = None
    days_per_1t_tokens: _PublishedNumbers | None = None
    flop_formula: FlopFormula | None = None
    release: NonEmptyStr | None = None
    source: NonEmptyStr | None = None
    notes: Mapping[str, str] = FrozenMap()


@attrs.frozen(kw_only=True)
class RecipeTable:
    """A recipe file, without ``shared``.

    A recipe without ``points`` runs on any GPU type and any number of GPUs. Its own ``dtypes``, degrees and batch sizes
    then take the place of the published ones.
    """

    release: NonEmptyStr
    description: NonEmptyStr
    source: NonEmptyStr
    flop_formula: FlopFormula | None = None
    mfu_from: MfuSource = "step time"
    window: Literal["last"] | StepRange
    steps: PositiveInt
    profile_steps: Mapping[ProfileTool, PositiveInt] = FrozenMap()
    captured_steps: Mapping[ProfileTool, StepRange] = FrozenMap()
    time_limit: Duration
    memory_gb: PositiveFloat | None = None
    image: Image | None = None
    model: Model | None = None
    seq_len: PositiveInt | None = None
    """Tokens of a sequence, by default those of [model]."""
    params: PositiveFloat | None = None
    """Parameters of a model without [model]. A token then costs 6 x params FLOPs."""
    active_params: PositiveFloat | None = None
    """Parameters that each token uses in a model with experts, by default ``params``."""
    flops_per_token: PositiveFloat | None = None
    """FLOPs of a token, forward and backward, of a model without [model] and ``params``."""
    dtypes: Words | None = None
    """The dtypes of a recipe without [[points]], by default bf16."""
    tp: Rule = 1
    """Tensor parallelism of a recipe without [[points]]: a number, or a rule such as "gpus / 2"."""
    pp: Rule = 1
    """Pipeline parallelism of a recipe without [[points]]."""
    vp: Rule = 1
    """Interleaved stages of each pipeline rank of a recipe without [[points]]; 1 means none."""
    cp: Rule = 1
    """Context parallelism of a recipe without [[points]]."""
    ep: Rule = 1
    """Expert parallelism of a recipe without [[points]]."""
    etp: Rule = 1
    """Tensor parallelism of the experts of a recipe without [[points]]."""
    fsdp: Rule = 1
    """The number of shards of the parameters of a recipe without [[points]]; 1 means none."""
    micro_batch_size: Rule = 1
    """Sequences in a micro batch of a recipe without [[points]]."""
    global_batch_size: Rule | None = None
    """Sequences in a step of a recipe without [[points]]: a number, or a rule such as "8 * gpus"."""
    framework: Mapping[str, Any] = FrozenMap()
    settings: tuple[SettingsTable, ...] = ()
    points: tuple[PointTable, ...] = ()
    baselines: tuple[BaselineTable, ...] = ()
