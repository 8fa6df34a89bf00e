"""The end of a run: what state it truly ended in, its figures, the verdict, and why it broke if it did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from llmb.analysis.metrics import Metrics
from llmb.analysis.run_state import Evidence, Outcome, decide
from llmb.analysis.verdict import judge
from llmb.analysis.window import Summary, summarise
from llmb.drive.active import ActiveRun
from llmb.drive.result import read_result
from llmb.logs.diagnose import diagnose, known_remedy
from llmb.logs.log_tail import log_tail
from llmb.plugins.peak_flops import measure_run, peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.values.failure import Failure
from llmb.values.job_status import JobStatus, Verdict
from llmb.values.run import Run


def finish(active: ActiveRun, status: JobStatus, pool: PluginRegistry) -> None:
    """Write the steps and the result, then the last event. Done again after a kill, it writes the same."""
    run = active.run
    steps = active.series.steps
    evidence = Evidence(
        cause=status.cause or "failed",
        exit_code=status.exit_code,
        reason=status.reason,
        remedy=status.remedy or (known_remedy(status.reason, pool.signatures()) if status.reason else ""),
        messages=frozenset(notice.kind for notice in active.messages),
        steps_done=active.series.count,
        steps_asked=run.steps,
        nan=active.series.nan,
        unread=active.unread,
    )
    outcome = decide(evidence)
    summary = summarise(steps, run.window)
    if run.window == "last" and not evidence.all_steps:  # what is last in the log is not the run's last
        summary = attrs.evolve(summary, complete=False)
    peak = peak_flops(run, active.planned.target, pool) if steps else None
    metrics = measure_run(run, summary.step_time_s, summary.tflops_per_gpu, peak) if steps else None
    verdict, reason = _judge(run, metrics, summary, outcome, active.series.nan)
    failure = _failure(active, outcome, pool) if outcome.state != "completed" else None
    result = attrs.evolve(
        read_result(active.record),
        state=outcome.state,
        metrics=metrics,
        verdict=verdict,
        reason=outcome.reason or reason,
        failure=failure,
        refused=status.cause == "refused",
        steps_done=evidence.steps_done,
        window_complete=summary.complete,
    )
    active.record.write_result(result.as_dict(), steps)
    active.enter(outcome.state)


def _judge(
    run: Run[Any], metrics: Metrics | None, summary: Summary, outcome: Outcome, nan: bool
) -> tuple[Verdict | None, str]:
    if metrics is None:
        return ("undecided" if run.baseline and not run.profile else None), "no step was measured"
    if run.baseline and run.differences and not run.profile:
        return "undecided", f"not comparable with the baseline: {', '.join(run.differences)} differ from the recipe"
    verdict, reason = judge(
        metrics,
        run.tolerance,
        completed=outcome.state == "completed",
        window_complete=summary.complete,
        loss_nan=nan,
        profiled=run.profile is not None,
    )
    printed = f" (the framework prints means of {summary.mean_of} steps)" if summary.mean_of > 1 else ""
    return verdict, reason + printed


def _failure(active: ActiveRun, outcome: Outcome, pool: PluginRegistry) -> Failure:
    """The cause found in the logs, else what the end itself tells, with the last words of the log."""
    extra = pool.signatures()
    logs = _latest_first(active)
    if outcome.look_in_logs:
        if found := diagnose(logs, extra, active.superseded_until()):
            return found
        return Failure(cause=outcome.reason, evidence=log_tail(logs), remedy=outcome.remedy)
    return Failure(cause=outcome.reason, remedy=outcome.remedy)


def _latest_first(active: ActiveRun) -> list[Path]:
    """The copies of the logs: of the last phase first, of the scheduler's own words last."""
    order = {phase.name: number for number, phase in enumerate(active.planned.job.phases)}
    logs = sorted(active.logs, key=lambda log: -order.get(log.phase, -1))
    return [active.record.logs / log.copy for log in logs]
