"""Attempts of a job, lost time and the samples of its GPUs, in the result of a run."""

from typing import Any

import attrs

from llmb.analysis.goodput import divide_wall_time
from llmb.analysis.power_and_throttling import Telemetry, summarise_telemetry
from llmb.files import open_regular
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.result import RunResult
from llmb.scripts.sample_gpus import TELEMETRY
from llmb.values.causes import Cause
from llmb.values.job_history import Attempt, JobHistory
from llmb.values.run import Run


def add_attempts_and_telemetry(
    result: RunResult,
    run: Run[Any],
    logs: LogCopies,
    history: JobHistory,
    attempts: tuple[Attempt, ...],
    *,
    cause: Cause,
) -> RunResult:
    """Return the result with attempts, goodput and telemetry. ``cause`` is the reason for the end of the job."""
    mean_of = max((step.mean_of or 1 for step in logs.series.steps), default=1)
    wall = divide_wall_time(
        attempts,
        result.steady_state,
        steps=logs.series.count,
        earlier_steps=logs.series.earlier_count,
        mean_of=mean_of,
        checkpoints_s=logs.series.checkpoints_s,
    )
    telemetry = _read_telemetry(result, run, logs)
    notes = [history.note] if len(attempts) > 1 or cause == "cancelled" else []
    notes += _explain_missing_samples(telemetry) if attempts and run.telemetry else []
    return attrs.evolve(
        result,
        attempts=attempts,
        goodput=wall.goodput if wall else None,
        wall_time=wall,
        telemetry=telemetry,
        notes=(*result.notes, *filter(None, notes)),
    )


def _read_telemetry(result: RunResult, run: Run[Any], logs: LogCopies) -> Telemetry | None:
    """Return the summary of the samples in the copy of the log, or None if there is no log."""
    copy = logs.sidecar_copy(TELEMETRY)
    if run.telemetry is None or copy is None or not copy.exists():
        return None
    with open(copy, encoding="utf-8", errors="replace", opener=open_regular) as lines:
        return summarise_telemetry(lines, result.metrics, run.gpus)


def _explain_missing_samples(telemetry: Telemetry | None) -> list[str]:
    """Return a note if the tool reported errors or took no samples."""
    if telemetry is None:
        return ["no telemetry: the job did not start the sampling of its GPUs"]
    if telemetry.errors:
        more = f" (and {len(telemetry.errors) - 1} more)" if len(telemetry.errors) > 1 else ""
        return [f"telemetry: {telemetry.errors[0]}{more}"]
    return [] if telemetry.samples else ["no telemetry: no GPU was busy in any sample"]
