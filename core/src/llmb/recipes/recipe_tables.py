"""The tables and keys of a recipe file. docs/recipes.md describes them."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from llmb.recipes.scaling_rules import Condition, Rule
from llmb.values.environment import Image
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model
from llmb.values.recipe import MfuSource, ProfileTool
from llmb.values.types.durations import Duration
from llmb.values.types.numbers import NonNegativeInt, PositiveFloat, PositiveInt
from llmb.values.types.one_or_more import one_or_more
from llmb.values.types.value_type import accepting
from llmb.values.types.words_and_addresses import NonEmptyStr


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
        schema={"type": "number"},
    ),
]
_PublishedNumbers = Annotated[tuple[float | None, ...], one_or_more(_Published)]
StepRange = Annotated[
    tuple[int, int],
    accepting(
        "[first, last] in the framework's own step numbers",
        _is_step_range,
        tuple,
        schema={"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2},
    ),
]


@attrs.frozen(kw_only=True)
class SettingsTable:
    """A table of [[settings]]: a part of [framework] for the points of these GPU types, dtypes and variants."""

    gpu_type: Words | None = None
    """GPU types of the points. Default: all."""
    dtype: Words | None = None
    """Dtypes of the points. Default: all."""
    variant: Words | None = None
    """Variants of the points. Default: all."""
    framework: Mapping[str, Any]
    """Keys that are merged over [framework] for these points."""

    def applies(self, gpu_type: str, dtype: str, variant: str | None) -> bool:
        """Check whether the settings are for this GPU type, dtype and variant."""
        pairs = ((self.gpu_type, gpu_type), (self.dtype, dtype), (self.variant, variant))
        return all(wanted is None or value in wanted for wanted, value in pairs)


@attrs.frozen(kw_only=True)
class RulesTable:
    """Rules for the number of GPUs, of one table of [[points]] or of a recipe without [[points]]."""

    tp: Rule = 1
    """Tensor parallelism: a number, or a rule such as ``gpus / 8``."""
    pp: Rule = 1
    """Pipeline parallelism: a number or a rule."""
    vp: Rule = 1
    """Interleaved stages of each pipeline rank: a number or a rule."""
    cp: Rule = 1
    """Context parallelism: a number or a rule."""
    ep: Rule = 1
    """Expert parallelism: a number or a rule."""
    etp: Rule = 1
    """Tensor parallelism of experts: a number or a rule."""
    fsdp: Rule = 1
    """Number of shards: a number or a rule."""
    micro_batch_size: Rule = 1
    """Sequences in one pass of a replica: a number or a rule."""


@attrs.frozen(kw_only=True)
class PointTable(RulesTable):
    """A table of [[points]]: every combination of gpu_type, dtype and gpus."""

    gpu_type: Words
    """GPU types; every combination with dtype and gpus is a point."""
    dtype: Words
    """Dtypes."""
    gpus: _Counts
    """Numbers of GPUs of all nodes."""
    other_gpus: Condition | None = None
    """Numbers of GPUs that are not published and that the rules hold for: ``any``, or a comparison such as
    ``nodes < 64``. Default: none.
    """
    variant: NonEmptyStr | None = None
    """Name that distinguishes points of the same GPU type, dtype and number of GPUs. Default: none."""
    global_batch_size: Rule
    """Sequences in one step: a number, or a rule such as ``2 * gpus``."""
    pipeline_layout: NonEmptyStr | None = None
    """Layers of each pipeline stage, if they are not divided evenly. Default: evenly."""
    proxy: bool = False
    """The model is reduced to fit on fewer GPUs than the complete model needs."""
    recompute_layers: NonNegativeInt = 0
    """Layers whose activations are computed again in the backward pass."""
    offload_layers: NonNegativeInt = 0
    """Layers whose activations are moved to the memory of the host."""
    cuda_graphs: bool = False
    """The publisher's configuration captures the step as a graph."""
    time_limit: Duration | None = None
    """Time after which the scheduler ends the job. Default: the recipe's."""
    model: Mapping[str, Any] = FrozenMap()
    """Keys that replace those of [model] for these points, for proxies."""
    framework: Mapping[str, Any] = FrozenMap()
    """Keys that are merged into [framework] for these points."""
    options: Mapping[str, Any] = FrozenMap()
    """Options of the spec's [framework] that select the variant too."""


@attrs.frozen(kw_only=True)
class BaselineTable:
    """A table of [[baselines]]: one value of each column for each of gpus."""

    gpu_type: NonEmptyStr
    """GPU type of the points."""
    dtype: NonEmptyStr
    """Dtype of the points."""
    gpus: _Counts
    """Numbers of GPUs; each column has one value for each of them."""
    variant: NonEmptyStr | None = None
    """Variant of the points. Default: none."""
    step_time_s: _Numbers | None = None
    """Published step times, in seconds."""
    tflops_per_gpu: _Numbers | None = None
    """Published TFLOP/s per GPU, if the publisher states them instead of step times."""
    tokens_per_s_per_gpu: _Numbers | None = None
    """Published tokens/s per GPU, if the publisher states them instead of step times."""
    tokens_per_s: _PublishedNumbers | None = None
    """Published tokens/s of all GPUs; nan for an unpublished value."""
    mfu_percent: _PublishedNumbers | None = None
    """Published MFU in percent; nan for an unpublished value."""
    days_per_1t_tokens: _PublishedNumbers | None = None
    """Published days to train 1T tokens; nan for an unpublished value."""
    flop_formula: FlopFormula | None = None
    """Formula of the published FLOP/s. Default: the recipe's."""
    release: NonEmptyStr | None = None
    """Release of the publisher that has these values. Default: the recipe's."""
    source: NonEmptyStr | None = None
    """Document or URL of these values. Default: the recipe's."""
    notes: Mapping[str, str] = FrozenMap()
    """Notes on single values, by number of GPUs."""


@attrs.frozen(kw_only=True)
class RecipeTable(RulesTable):
    """A recipe file, without ``shared``.

    A recipe without ``points`` runs on any GPU type and any number of GPUs. Its own ``dtypes``, degrees and batch sizes
    then take the place of the published ones.
    """

    release: NonEmptyStr
    """Release of the publisher."""
    description: NonEmptyStr
    """What the recipe trains, in one line."""
    source: NonEmptyStr
    """Document or URL with the numbers of the recipe."""
    flop_formula: FlopFormula | None = None
    """Formula of the FLOPs of a step."""
    mfu_from: MfuSource = "step time"
    """Origin of the MFU of a run: the step time, or the TFLOP/s that the framework logs."""
    window: Literal["last"] | StepRange
    """Measuring window: the last step, or the first and last of these steps in the framework's own numbers."""
    steps: PositiveInt
    """Training steps."""
    profile_steps: Mapping[ProfileTool, PositiveInt] = FrozenMap()
    """Training steps under a tool of [profile], if they differ."""
    captured_steps: Mapping[ProfileTool, StepRange] = FrozenMap()
    """First and last step that a tool of [profile] captures, if not all."""
    time_limit: Duration
    """Time after which the scheduler ends the job."""
    memory_gb: PositiveFloat | None = None
    """Memory that each GPU must have, in GB."""
    image: Image | None = None
    """Container image."""
    model: Model | None = None
    """Architecture of the model."""
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
    global_batch_size: Rule | None = None
    """Sequences in a step of a recipe without [[points]]: a number, or a rule such as "8 * gpus"."""
    framework: Mapping[str, Any] = FrozenMap()
    """Settings of the framework plugin."""
    settings: tuple[SettingsTable, ...] = ()
    """Parts of [framework] for some points, merged over it."""
    points: tuple[PointTable, ...] = ()
    """Published configurations."""
    baselines: tuple[BaselineTable, ...] = ()
    """Published performance."""
