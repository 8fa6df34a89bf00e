"""Checks of published values against the peak of their GPU: a value in another unit is impossible there."""

from collections.abc import Iterator

from llmb.analysis.valid_range import is_plausible, range_faults
from llmb.recipes.accelerators import accelerators
from llmb.recipes.baselines import STATED, PublishedRow
from llmb.values.errors import Fault
from llmb.values.recipe import Baseline, Point
from llmb.values.texts.error_text import counted

_UNITS = {
    "step_time_s": ("s", "seconds, not minutes or hours", "seconds, not milliseconds"),
    "tflops_per_gpu": ("TFLOP/s", "TFLOP/s of one GPU, not GFLOP/s or those of all GPUs", "TFLOP/s, not PFLOP/s"),
    "tokens_per_s_per_gpu": (
        "tokens/s per GPU",
        "tokens/s of one GPU, not those of all GPUs",
        "tokens/s, not thousands of tokens/s",
    ),
}
"""The unit of each column, and what is expected instead of a value that is too fast, and of one that is too slow."""


def check_baseline(
    point: Point, row: PublishedRow, baseline: Baseline, flops_per_step: float | None
) -> Iterator[Fault]:
    """Yield an error if a baseline is out of range, or far from every step time that its GPUs can have.

    A GPU type without a peak in core's table, such as a CPU, has no such limit.
    """
    name = next(each for each in STATED if row.values.get(each) is not None)
    key, value = f"{row.place}.{name}", row.values[name]
    unit, if_fast, if_slow = _UNITS[name]
    if faults := range_faults(baseline.step_time_s, baseline.tflops_per_gpu):
        found = next((each for each in faults if each.key == name), faults[0])
        yield Fault(message=found.message, key=key, expected=found.expected)
        return
    known = accelerators().get(point.gpu_type)
    peak = known.peak_flops.get(point.dtype) if known else None
    if peak is None or flops_per_step is None:
        return
    mfu = flops_per_step / (point.gpus * peak) / baseline.step_time_s
    if not is_plausible(mfu, baseline.step_time_s):
        message = f"{value:g} {unit} on {counted(point.gpus, 'GPU')} is an MFU of {100 * mfu:.2g} %"
        yield Fault(message=message, key=key, expected=if_fast if mfu > 1 else if_slow)
