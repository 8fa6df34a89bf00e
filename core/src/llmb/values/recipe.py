"""A published recipe: a model, how it is run at each published point, and what its publisher measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from llmb.values.frozen import FrozenMap, frozen_fields
from llmb.values.job import Image
from llmb.values.model import FlopFormula, Model, Parallelism

Window = Literal["last"] | tuple[int, int]
MfuSource = Literal["step time", "logged"]


@attrs.frozen(kw_only=True)
class Baseline:
    """What the publisher measured at one point: seconds, tokens/s, a fraction, days; with release and source.

    A figure that the publisher does not state is null. ``note`` tells what is known to be odd about the row.
    """

    step_time_s: float
    tokens_per_s: float | None = None
    mfu: float | None = None
    days_per_1t_tokens: float | None = None
    release: str
    source: str
    note: str = ""


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Point:
    """One published combination. ``settings`` is the framework's own part of the recipe at this point.

    ``options`` are the options of [framework] under which it holds: empty but in a recipe's variants.
    """

    gpu_type: str
    dtype: str
    gpus: int
    model: Model
    parallelism: Parallelism
    proxy: bool = False
    recompute_layers: int = 0
    offload_layers: int = 0
    cuda_graphs: bool = False
    settings: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    options: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    baseline: Baseline | None = None


@attrs.frozen(kw_only=True, field_transformer=frozen_fields)
class Recipe:
    """All points of one release of a recipe.

    ``variants`` take the place of points where a spec's [framework] asks for it: another FP8 recipe may need another
    division over GPUs.

    ``window`` is the measuring window: the last step, or the first and last step of a mean. ``mfu_from`` tells
    which MFU the publisher states: from step time and formula, or from the TFLOP/s that the framework logs.
    ``profile_steps`` is how many steps a run has under a tool of [profile], where that is not ``steps``;
    ``captured_steps`` are the first and last of them that the tool captures, where that is not all.
    """

    address: str
    framework: str
    release: str
    description: str
    source: str
    model: Model
    flop_formula: FlopFormula
    mfu_from: MfuSource
    window: Window
    steps: int
    profile_steps: Mapping[str, int] = attrs.field(factory=FrozenMap)
    captured_steps: Mapping[str, tuple[int, int]] = attrs.field(factory=FrozenMap)
    time_limit_s: int
    memory_gb: float | None
    image: Image | None
    points: tuple[Point, ...]
    variants: tuple[Point, ...] = ()

    def find(self, gpu_type: str, dtype: str, gpus: int) -> Point | None:
        """The point published for this combination, if there is one."""
        wanted = (gpu_type, dtype, gpus)
        return next((point for point in self.points if (point.gpu_type, point.dtype, point.gpus) == wanted), None)
