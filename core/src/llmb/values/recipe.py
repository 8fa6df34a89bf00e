"""A published recipe: a model, its published configurations, and what the publisher measured."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb.values.environment import Image
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model, Parallelism
from llmb.values.scalars import NonNegativeInt, PositiveFloat, PositiveInt
from llmb.values.typed import typed_fields

Window = Literal["last"] | tuple[int, int]
MfuSource = Literal["step time", "logged"]
ProfileTool = Literal["nsys", "nccl-trace"]


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Baseline:
    """The metrics that a publisher measured at one point, with release and source. Unpublished metrics are None.

    ``note`` describes known irregularities of the row.
    """

    step_time_s: PositiveFloat
    tokens_per_s: PositiveFloat | None = None
    mfu: PositiveFloat | None = None
    days_per_1t_tokens: PositiveFloat | None = None
    release: str
    source: str
    note: str = ""


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Point:
    """One published configuration. ``settings`` is the framework's own part of the recipe at this point.

    ``options`` are the options of [framework] that select the point; only the variants of a recipe have some.
    """

    gpu_type: str
    dtype: str
    gpus: PositiveInt
    model: Model
    parallelism: Parallelism
    proxy: bool = False
    recompute_layers: NonNegativeInt = 0
    offload_layers: NonNegativeInt = 0
    cuda_graphs: bool = False
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    options: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    baseline: Baseline | None = None


@attrs.frozen(kw_only=True, field_transformer=typed_fields)
class Recipe:
    """All points of one release of a recipe.

    ``releases`` are the releases of its line, the oldest first: a release and the fixes of it.
    ``variants`` replace points if the [framework] of a spec selects them: another FP8 recipe may need another division
    over GPUs. ``window`` is the measuring window: the last step, or the first and last step of a mean. ``mfu_from`` is
    the source of the published MFU: step time and formula, or the TFLOP/s that the framework logs. ``profile_steps`` is
    the number of steps under a tool of [profile], if it differs from ``steps``; ``captured_steps`` are the first and
    the last step that the tool captures, if it does not capture all.
    """

    address: str
    framework: str
    release: str
    releases: tuple[str, ...] = ()
    description: str
    source: str
    model: Model
    flop_formula: FlopFormula
    mfu_from: MfuSource
    window: Window
    steps: PositiveInt
    profile_steps: Mapping[ProfileTool, int] = attrs.field(factory=FrozenMap)
    captured_steps: Mapping[ProfileTool, tuple[int, int]] = attrs.field(factory=FrozenMap)
    time_limit_s: PositiveInt
    memory_gb: PositiveFloat | None
    image: Image | None
    points: tuple[Point, ...]
    variants: tuple[Point, ...] = ()

    def find(self, gpu_type: str, dtype: str, gpus: int) -> Point | None:
        """Return the point published for this combination, or None."""
        wanted = (gpu_type, dtype, gpus)
        return next((point for point in self.points if (point.gpu_type, point.dtype, point.gpus) == wanted), None)
