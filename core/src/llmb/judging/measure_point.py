"""Metrics of a published configuration of a recipe."""

from llmb.analysis.metrics import Metrics, compute_configuration_metrics
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
    peak_flops = known_peak_flops(point.gpu_type, point.dtype, accelerator, recipe.framework, registry)
    return compute_configuration_metrics(point, point.model, recipe, step_time_s, tflops_per_gpu, peak_flops)
