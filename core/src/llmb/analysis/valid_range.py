"""Valid ranges of logged numbers."""

import math
from typing import Annotated, Any

from llmb.values.errors import Fault
from llmb.values.types.numbers import number_type

Bounds = tuple[float, float]
"""The smallest and the largest valid value."""

STEP_TIME_S: Bounds = (1e-6, 1e7)
"""A step of less than 1e-6 s launches no kernel. A step of 1e7 s takes 116 days."""

StepTime = Annotated[
    float,
    number_type("1e-06 to 1e+07 s", lambda value: possible(value, STEP_TIME_S) is not None, minimum=1e-6, maximum=1e7),
]
"""A step time in a record, in s."""

TFLOPS_PER_GPU: Bounds = (1e-6, 1e6)
"""1e6 is about a hundred times the dense peak of any GPU. 1e-6, a MFLOP/s, is less than any processor reaches."""


MAX_MFU = 10
"""A formula may count more FLOPs than the GPU computes, such as those of frozen weights, but not ten times as many."""

MIN_MFU = 1e-3
"""The least MFU of a step that computes for `COMPUTE_BOUND_S`. Milliseconds for seconds are below it."""

COMPUTE_BOUND_S = 0.01
"""The time that a step would take at the peak, from which launches of kernels do not dominate the step time."""


def is_plausible(mfu: float, step_time_s: float) -> bool:
    """Check whether an MFU may be one of this step time, not the result of another unit."""
    return mfu <= MAX_MFU and (mfu >= MIN_MFU or mfu * step_time_s < COMPUTE_BOUND_S)


def finite_or_none(value: Any) -> Any:
    """Return the value with None instead of NaN and infinity, which JSON cannot contain; of a table, each value."""
    if isinstance(value, dict):
        return {key: finite_or_none(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def possible(value: float | None, bounds: Bounds) -> float | None:
    """Return the value, or None if it is None, NaN or out of bounds."""
    return value if value is not None and bounds[0] <= value <= bounds[1] else None


def range_faults(step_time_s: float | None, tflops_per_gpu: float | None) -> list[Fault]:
    """Return the errors of two values from a user or a publisher that are out of range."""
    given = (
        ("step_time_s", step_time_s, STEP_TIME_S, "s"),
        ("tflops_per_gpu", tflops_per_gpu, TFLOPS_PER_GPU, "TFLOP/s"),
    )
    return [
        Fault(key=key, message=f"{value:g} {unit} is out of range", expected=f"{low:g} to {high:g} {unit}")
        for key, value, (low, high), unit in given
        if value is not None and possible(value, (low, high)) is None
    ]
