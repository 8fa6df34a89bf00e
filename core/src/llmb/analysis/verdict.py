"""Whether a run was as fast as published."""

from __future__ import annotations

from llmb.analysis.metrics import Metrics
from llmb.values.job_status import Verdict

_ROUNDING = 1e-9
"""So that a step time exactly at the limit passes, whatever its last binary digit."""


def judge(
    metrics: Metrics,
    tolerance: float,
    *,
    completed: bool,
    window_complete: bool,
    loss_nan: bool,
    profiled: bool,
) -> tuple[Verdict | None, str]:
    """The verdict on a run, and one plain sentence of why.

    Pass where measured / published step time <= 1 + ``tolerance``, else fail; faster than published is a pass, and
    the sentence says so where it is by more than the tolerance. Null where there is nothing to be judged against: no
    baseline, or a profile asked for. Undecided where the run cannot count: it did not complete, its loss was NaN, its
    measuring window is not whole, or the steps of that window state no time.
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
    """Why the run cannot count, if it cannot."""
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
