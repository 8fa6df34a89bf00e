"""Metrics and verdict of a run that llmb started, from its steps."""

from typing import Any

import attrs

from llmb.analysis.impossible_step_times import explain_impossible_step_time
from llmb.analysis.measuring_window import MeasuredWindow, Summary, summarise
from llmb.analysis.metrics import Metrics, compute_run_metrics
from llmb.analysis.steady_state import SteadyState, find_steady_state
from llmb.analysis.verdict import (
    Candidate,
    Judgement,
    Repeat,
    add_clause,
    describe_missing_window,
    find_objection,
    judge_set,
)
from llmb.logs.steps.step_series import StepSeries
from llmb.values.run import Run


@attrs.frozen(kw_only=True)
class MeasuredRun:
    """Metrics and verdict of a run. ``metrics`` is None without a step, ``window`` is None if it is incomplete."""

    summary: Summary
    metrics: Metrics | None
    window: MeasuredWindow | None
    steady_state: SteadyState | None
    judgement: Judgement


def measure_and_judge(
    run: Run[Any], series: StepSeries, peak_flops: float | None, *, completed: bool, other_gpus: str
) -> MeasuredRun:
    """Return metrics and verdict of a run.

    ``peak_flops`` is the peak of one GPU in FLOP/s. ``other_gpus`` describes GPUs of the job that are not of the run's
    type.
    """
    steps, published_s = series.steps, run.baseline.step_time_s if run.baseline else None
    summary = summarise(steps, run.window)
    if run.window == "last" and series.count < run.steps:  # the last step in the log is not the run's last step
        summary = attrs.evolve(summary, complete=False)
    metrics = compute_run_metrics(run, summary.step_time_s, summary.tflops_per_gpu, peak_flops) if steps else None
    window = summary.measured(metrics.step_time_s if metrics else None)
    steady = find_steady_state(steps)
    invalid_step_time = other_gpus or (explain_impossible_step_time(metrics) if run.accelerator.peak_flops else "")
    missing = ""
    if steps and not summary.complete:
        missing = describe_missing_window(summary, steps, steady, published_s)
    objection = _find_objection(run, series, completed=completed, missing=missing, invalid_step_time=invalid_step_time)
    repeat = Repeat(window=window, steady_state=steady) if window else None
    judgement = judge_set([Candidate(repeat=repeat, objection=objection)], published_s, run.tolerance)
    if summary.mean_of > 1 and judgement.interval:
        judgement = add_clause(judgement, f"the framework prints means of {summary.mean_of} steps")
    return MeasuredRun(summary=summary, metrics=metrics, window=window, steady_state=steady, judgement=judgement)


def _find_objection(
    run: Run[Any], series: StepSeries, *, completed: bool, missing: str, invalid_step_time: str
) -> Judgement | None:
    """Return the reason that prevents a verdict on the step time of a run, or None."""
    if not series.steps:
        return Judgement(
            verdict="undecided" if run.baseline and not run.profile else None, reason="no step was measured"
        )
    return find_objection(
        published=run.baseline is not None,
        profiled=run.profile is not None,
        differences=run.differences,
        completed=completed,
        loss_nan=series.nan,
        missing_window=f"the measuring window is not complete: {missing}" if missing else "",
        invalid_step_time=invalid_step_time,
    )
