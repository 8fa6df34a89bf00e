"""The dense peak of a GPU: of an extension or core's table, else of the framework, else of the scheduler."""

from typing import Any

from llmb.plugins.guard import plugin_error
from llmb.plugins.registry import PluginRegistry
from llmb.values.model import Accelerator
from llmb.values.run import Run, Target
from llmb.values.types.numbers import peak_problem


def find_peak_flops(run: Run[Any], target: Target[Any], registry: PluginRegistry) -> float | None:
    """Return the dense peak of one GPU of a run in FLOP/s, or None if no source has it."""
    peak = known_peak_flops(run.gpu_type, run.dtype, run.accelerator, run.framework, registry)
    if peak is not None:
        return peak
    scheduler = registry.scheduler(target.scheduler)
    return _checked(scheduler.peak_flops(gpu_type=run.gpu_type, dtype=run.dtype, target=target), scheduler)


def known_peak_flops(
    gpu_type: str, dtype: str, accelerator: Accelerator | None, framework: str, registry: PluginRegistry
) -> float | None:
    """Return the dense peak of one GPU in FLOP/s, or None if only a machine with this GPU can report it.

    ``accelerator`` is the GPU type in core's table or of an extension. The framework is loaded only if the table lacks
    the dtype.
    """
    if accelerator and (peak := accelerator.peak_flops.get(dtype)) is not None:
        return peak
    plugin = registry.framework(framework)
    return _checked(plugin.peak_flops(gpu_type=gpu_type, dtype=dtype), plugin)


def _checked(peak: float | None, plugin: object) -> float | None:
    """Return the result of a hook. Raise PluginError if it is no peak in FLOP/s."""
    if peak is not None and (problem := peak_problem(peak)):
        raise plugin_error(plugin, f"peak_flops() returned {problem}")
    return peak
