"""A published recipe: a model, its published configurations, and what the publisher measured."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb.values.environment import Image
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model, Parallelism
from llmb.values.types.check_types import typed_fields
from llmb.values.types.numbers import NonNegativeInt, PositiveFloat, PositiveInt

Window = Literal["last"] | tuple[int, int]
MfuSource = Literal["step time", "logged"]
ProfileTool = Literal["nsys", "nccl-trace"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Baseline:
    """The metrics that a publisher measured at one point, with release and source. Unpublished metrics are None.

    ``note`` describes known irregularities of the row. If the publisher states TFLOP/s per GPU, the step time is
    computed from them.
    """

    step_time_s: PositiveFloat
    tflops_per_gpu: PositiveFloat | None = None
    tokens_per_s: PositiveFloat | None = None
    mfu: PositiveFloat | None = None
    days_per_1t_tokens: PositiveFloat | None = None
    release: str
    source: str
    note: str = ""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class ScalingRule:
    """A publisher's computation of parallelism and batch size from the number of GPUs, of any number.

    ``condition`` is "any" or a comparison such as "nodes < 64". ``degrees`` has a number or a rule for each degree.
    """

    condition: str
    degrees: Mapping[str, int | str]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Point:
    """One published configuration. ``settings`` is the framework's own part of the recipe at this point.

    ``variant`` distinguishes points of the same GPU type, dtype and number of GPUs; the first in the recipe is the
    publisher's default. ``options`` are the options of [framework] that select the point without [workload] variant.
    ``time_limit_s`` is None for the recipe's own limit. ``rule`` computes the configuration for numbers of GPUs that
    are not published, if the publisher's scripts do so.
    ``model`` is None if the recipe has no architecture; ``seq_len`` is known in any case.
    ``other_baselines`` are results of the same configuration with other releases of the software.
    """

    gpu_type: str
    dtype: str
    gpus: PositiveInt
    variant: str | None = None
    model: Model | None
    seq_len: PositiveInt
    parallelism: Parallelism
    proxy: bool = False
    recompute_layers: NonNegativeInt = 0
    offload_layers: NonNegativeInt = 0
    cuda_graphs: bool = False
    time_limit_s: PositiveInt | None = None
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    options: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    rule: ScalingRule | None = None
    baseline: Baseline | None = None
    other_baselines: tuple[Baseline, ...] = ()


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class RecipeCopy:
    """The files of a recipe that the record of a run keeps, and the recipe's address there.

    ``files`` maps paths in the record to texts. ``address`` is relative to the record.
    """

    address: str
    files: Mapping[str, str]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Recipe:
    """All points of one release of a recipe.

    ``releases`` are the releases of its line, the oldest first: a release and the fixes of it.
    ``window`` is the measuring window: the last step, or the first and last step of a mean. ``mfu_from`` is
    the source of the published MFU: step time and formula, or the TFLOP/s that the framework logs. ``profile_steps`` is
    the number of steps under a tool of [profile], if it differs from ``steps``; ``captured_steps`` are the first and
    the last step that the tool captures, if it does not capture all.

    ``model`` is None if the recipe states no architecture. FLOPs then come from ``flops_per_token``, or are unknown if
    that is None too. A recipe with a ``rule`` runs on any GPU type, on any number of GPUs and in each of ``dtypes``.
    The rule computes the configuration, and ``settings`` are the framework's own part of it. ``copy`` is for the record
    of a run, if the recipe is a file that the user may change at any time. ``file`` is the path of the recipe's file.
    """

    address: str
    framework: str
    release: str
    releases: tuple[str, ...] = ()
    description: str
    source: str
    model: Model | None
    seq_len: PositiveInt
    flop_formula: FlopFormula | None = None
    flops_per_token: PositiveFloat | None = None
    mfu_from: MfuSource
    window: Window
    steps: PositiveInt
    profile_steps: Mapping[ProfileTool, int] = attrs.field(factory=FrozenMap)
    captured_steps: Mapping[ProfileTool, tuple[int, int]] = attrs.field(factory=FrozenMap)
    time_limit_s: PositiveInt
    memory_gb: PositiveFloat | None
    image: Image | None
    points: tuple[Point, ...]
    rule: ScalingRule | None = None
    dtypes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    copy: RecipeCopy | None = None
    file: str = ""

    def published_model(self, point: Point) -> Model | None:
        """Return the model that a point is a configuration of: its own, or for a proxy the recipe's."""
        return self.model if point.proxy else point.model

    def find(self, gpu_type: str, dtype: str, gpus: int, *, variant: str | None = None) -> Point | None:
        """Return the point published for this combination, by default in the publisher's variant, or None."""
        wanted = (gpu_type, dtype, gpus)
        found = (point for point in self.points if (point.gpu_type, point.dtype, point.gpus) == wanted)
        return next((point for point in found if variant in (None, point.variant)), None)
