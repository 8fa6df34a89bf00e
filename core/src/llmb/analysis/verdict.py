"""Verdict on the step time of a run, compared with the published one."""

from __future__ import annotations

from llmb.analysis.metrics import Metrics
from llmb.values.job_status import Verdict

_ROUNDING = 1e-9
"""Margin by which a step time exactly at the limit passes in spite of floating-point rounding."""


def judge(
    metrics: Metrics,
    tolerance: float,
    *,
    completed: bool,
    window_complete: bool,
    loss_nan: bool,
    profiled: bool,
) -> tuple[Verdict | None, str]:
    """Return the verdict on a run, and its reason in one sentence.

    The verdict is pass if measured / published step time <= 1 + ``tolerance``, else fail. The verdict is None if the
    run has no baseline or is profiled. It is undecided if the run did not complete, its loss was NaN, or its measuring
    window is incomplete or has no step time.
    """
    baseline = metrics.baseline
    if profiled or baseline is None:
        return None, "profiled runs are not judged" if profiled else "no baseline is published for this run"
    doubt = _doubt(completed, loss_nan, window_complete)
    if doubt:
        return "undecided", doubt
    if baseline.step_time_ratio is None:
        return "undecided", "there is no step time to compare"
    ratio = baseline.step_time_ratio
    measured, published = f"{metrics.step_time_s:.4g} s", f"{baseline.step_time_s:.4g} s ({baseline.release})"
    reason = f"step time {measured} is {ratio:.3f} x the published {published}, {_distance(ratio, tolerance)}"
    return ("fail" if ratio > 1 + tolerance + _ROUNDING else "pass"), reason


def _doubt(completed: bool, loss_nan: bool, window_complete: bool) -> str | None:
    """Return the reason for an undecided verdict, or None."""
    if not completed:
        return "the run did not complete"
    if loss_nan:
        return "the loss was NaN, so the run trained nothing"
    return None if window_complete else "the measuring window is not complete"


def _distance(ratio: float, tolerance: float) -> str:
    percent = f"{100 * tolerance:g} %"
    if ratio > 1 + tolerance + _ROUNDING:
        return f"slower by more than {percent}"
    if ratio < 1 - tolerance - _ROUNDING:
        return f"faster by more than {percent}: check that the same work was done"
    return f"within {percent}"
