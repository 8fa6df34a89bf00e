"""The MFU that a published step time gives."""

from llmb.analysis.metrics import measure
from llmb.plugins.find_peak_flops import known_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.spec.choose_point import published_flops
from llmb.spec.resolve_run import known_accelerators
from llmb.values.recipe import Point, Recipe


def published_mfu(recipe: Recipe, point: Point, registry: PluginRegistry) -> float | None:
    """Return the MFU of the baseline of a configuration, or None without a baseline, a peak or FLOPs."""
    if point.baseline is None:
        return None
    accelerator = known_accelerators(registry).get(point.gpu_type)
    return measure(
        seq_len=point.seq_len,
        flops_per_sequence=published_flops(recipe, point),
        mfu_from="step time",
        global_batch_size=point.parallelism.global_batch_size,
        gpus=point.gpus,
        step_time_s=point.baseline.step_time_s,
        tflops_per_gpu=None,
        peak_flops=known_peak_flops(point.gpu_type, point.dtype, accelerator, recipe.framework, registry),
        proxy=point.proxy,
        baseline=point.baseline,
    ).mfu
