"""The figures of a run, from what its log tells and the peak of its GPUs."""

from __future__ import annotations

from typing import Any

from llmb.analysis.metrics import Metrics, measure
from llmb.plugins.registry import PluginRegistry
from llmb.values.model import Accelerator
from llmb.values.run import Run, Target


def peak_flops(run: Run[Any], target: Target[Any], pool: PluginRegistry) -> float | None:
    """Dense peak of one GPU in FLOP/s: from extensions or the core's table, else the framework, else the scheduler."""
    peak = known_peak_flops(run.gpu_type, run.dtype, run.accelerator, run.framework, pool)
    if peak is not None:
        return peak
    return pool.scheduler(target.scheduler).peak_flops(gpu_type=run.gpu_type, dtype=run.dtype, target=target)


def known_peak_flops(
    gpu_type: str, dtype: str, accelerator: Accelerator | None, framework: str, pool: PluginRegistry
) -> float | None:
    """Dense peak of one GPU in FLOP/s, as far as it is known without a machine that has one.

    ``accelerator`` is what extensions or the core's table know of the GPU type, and ``framework`` a plugin's name; that
    is loaded only where they do not know it.
    """
    if accelerator and (peak := accelerator.peak_flops.get(dtype)) is not None:
        return peak
    return pool.framework(framework).peak_flops(gpu_type=gpu_type, dtype=dtype)


def measure_run(run: Run[Any], step_time_s: float | None, tflops_per_gpu: float | None, peak: float | None) -> Metrics:
    """The metrics of a run at this step time in s, this logged TFLOP/s, and this dense peak of a GPU in FLOP/s."""
    return measure(
        model=run.model,
        flop_formula=run.flop_formula,
        mfu_from=run.mfu_from,
        global_batch_size=run.parallelism.global_batch_size,
        gpus=run.gpus,
        step_time_s=step_time_s,
        tflops_per_gpu=tflops_per_gpu,
        peak_flops=peak,
        proxy=run.proxy,
        baseline=run.baseline,
    )
