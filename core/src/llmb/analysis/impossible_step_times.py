"""Step times that the GPUs cannot reach, because MFU would be above 100 %."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # listing runs does not load the classes of specs
    from llmb.analysis.metrics import Metrics
    from llmb.values.run import Run

IMPOSSIBLE_MFU = "MFU above 100 % is impossible"
"""The beginning of the reason why a step time is not judged."""


def explain_impossible_step_time(metrics: Metrics | None) -> str:
    """Return why the GPUs cannot reach a step time, or "". The peak must be the one of a data sheet."""
    if metrics is None or metrics.mfu_computed is None or metrics.mfu_computed <= 1:
        return ""
    percent = f"{100 * metrics.mfu_computed:,.1f} %"
    return f"{IMPOSSIBLE_MFU} ({percent}): check the GPU type, the dtype, the step times and the recipe"


def high_mfu_note(run: Run[Any], metrics: Metrics | None) -> str:
    """Return the warning of an impossible MFU, or "". The peak of ``cpu`` is measured, unless a table has it."""
    if metrics is None or max(metrics.mfu or 0.0, metrics.mfu_computed or 0.0) <= 1:
        return ""
    if run.accelerator.peak_flops:
        return f"warning: {IMPOSSIBLE_MFU}: check the GPU type, the dtype and the FLOP formula"
    if run.gpu_type != "cpu":
        return f"warning: {IMPOSSIBLE_MFU}: check the result of peak_flops() of the plugins, and the FLOP formula"
    return (
        f"warning: {IMPOSSIBLE_MFU}: the machine was busy while the peak of its CPU was measured, or the recipe "
        "states too many FLOPs; run again on an idle machine, and check the recipe"
    )
