"""Metrics of a published configuration of a recipe."""

from __future__ import annotations

from llmb.analysis.flops import sequence_flops
from llmb.analysis.metrics import Metrics, measure
from llmb.plugins.find_peak_flops import known_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.spec.resolve_run import known_accelerators
from llmb.values.recipe import Point, Recipe


def measure_point(
    recipe: Recipe,
    point: Point,
    registry: PluginRegistry,
    step_time_s: float | None,
    tflops_per_gpu: float | None = None,
) -> Metrics:
    """Compute the metrics of a configuration from a step time (s), logged TFLOP/s per GPU, or both."""
    accelerator = known_accelerators(registry).get(point.gpu_type)
    return measure(
        seq_len=point.seq_len,
        flops_per_sequence=sequence_flops(
            model=point.model,
            flop_formula=recipe.flop_formula,
            flops_per_token=recipe.flops_per_token,
            seq_len=point.seq_len,
            tp=point.parallelism.tp,
        ),
        mfu_from=recipe.mfu_from,
        global_batch_size=point.parallelism.global_batch_size,
        gpus=point.gpus,
        step_time_s=step_time_s,
        tflops_per_gpu=tflops_per_gpu,
        peak_flops=known_peak_flops(point.gpu_type, point.dtype, accelerator, recipe.framework, registry),
        proxy=point.proxy,
        baseline=point.baseline,
    )
