"""The tables and keys of a recipe file. docs/recipes.md describes them."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from llmb.recipes.scaling_rules import Condition, Rule
from llmb.values.environment import Image
from llmb.values.error_text import invalid_value
from llmb.values.errors import Fault, SpecError
from llmb.values.frozen import FrozenMap
from llmb.values.model import FlopFormula, Model
from llmb.values.recipe import MfuSource, ProfileTool
from llmb.values.scalars import (
    Duration,
    InvalidValueError,
    NonEmptyStr,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValueType,
    accepting,
)
from llmb.values.typed import value_type


def _one_or_more(kind: Any, *, distinct: bool = False) -> ValueType:
    """Return the type of one value or a list of values, which is a tuple in any case."""
    item = value_type(kind)

    def convert(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        try:
            converted = tuple(map(item.convert, values))
        except InvalidValueError:
            raise InvalidValueError.of(value, f"{item.expected}, or a list of such values") from None
        if not converted:
            raise InvalidValueError.of(value, "a list with at least one item")
        if distinct and len(set(converted)) != len(converted):
            raise InvalidValueError.of(value, "each value once")
        return converted

    return ValueType(f"{item.expected}, or a list of such values", convert)


def _is_step_range(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and all(type(step) is int for step in value) and 0 <= value[0] <= value[1]


def _is_published(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and (math.isnan(value) or 0 < value < math.inf)
    )


_Words = Annotated[tuple[str, ...], _one_or_more(NonEmptyStr, distinct=True)]
_Counts = Annotated[tuple[int, ...], _one_or_more(PositiveInt, distinct=True)]
_Numbers = Annotated[tuple[float, ...], _one_or_more(PositiveFloat)]
_Published = Annotated[
    float | None,
    accepting(
        "a positive number, or nan if it is not published",
        _is_published,
        lambda value: None if math.isnan(value) else float(value),
    ),
]
_PublishedNumbers = Annotated[tuple[float | None, ...], _one_or_more(_Published)]
_StepRange = Annotated[
    tuple[int, int], accepting("[first, last] in the framework's own step numbers", _is_step_range, tuple)
]


def _not_empty(_table: object, _field: object, tables: tuple[Any, ...]) -> None:
    if not tables:
        raise SpecError(Fault(message=invalid_value([]), expected="at least one table"))


@attrs.frozen(kw_only=True)
class SettingsTable:
    """A table of [[settings]]: a part of [framework] for the points of these GPU types and dtypes."""

    gpu_type: _Words | None = None
    dtype: _Words | None = None
    framework: Mapping[str, Any]

    def applies(self, gpu_type: str, dtype: str) -> bool:
        """Check whether the settings are for this GPU type and dtype."""
        return (not self.gpu_type or gpu_type in self.gpu_type) and (not self.dtype or dtype in self.dtype)


@attrs.frozen(kw_only=True)
class PointTable:
    """A table of [[points]]: every combination of gpu_type, dtype and gpus."""

    gpu_type: _Words
    dtype: _Words
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
    proxy: bool = False
    recompute_layers: NonNegativeInt = 0
    offload_layers: NonNegativeInt = 0
    cuda_graphs: bool = False
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
    release: NonEmptyStr | None = None
    source: NonEmptyStr | None = None
    notes: Mapping[str, str] = FrozenMap()


@attrs.frozen(kw_only=True)
class RecipeTable:
    """A recipe file, without ``shared``."""

    release: NonEmptyStr
    description: NonEmptyStr
    source: NonEmptyStr
    flop_formula: FlopFormula
    mfu_from: MfuSource = "step time"
    window: Literal["last"] | _StepRange
    steps: PositiveInt
    profile_steps: Mapping[ProfileTool, PositiveInt] = FrozenMap()
    captured_steps: Mapping[ProfileTool, _StepRange] = FrozenMap()
    time_limit: Duration
    memory_gb: PositiveFloat | None = None
    image: Image | None = None
    model: Model
    framework: Mapping[str, Any] = FrozenMap()
    settings: tuple[SettingsTable, ...] = ()
    points: tuple[PointTable, ...] = attrs.field(validator=_not_empty)
    baselines: tuple[BaselineTable, ...] = ()
