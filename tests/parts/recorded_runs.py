"""Recorded runs with chosen step times and settings, without a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import tomli_w

import llmb
from llmb.analysis.measuring_window import summarise
from llmb.analysis.metrics import compute_run_metrics
from llmb.analysis.steady_state import find_steady_state
from llmb.analysis.verdict import Candidate, Repeat, judge_set
from llmb.paths import runs_folder
from llmb.records.record import RunRecord
from llmb.records.result import read_result
from llmb.spec.run_ids import draw_run_ids
from llmb.spec.spec_of_run import build_run_toml
from llmb.state_machine.events import Ended
from llmb.values.run_states import RunState

POINT = {"recipe": "maxtext/llama2-70b", "gpu_type": "h100", "dtype": "bf16", "gpus": 64}
PUBLISHED_S = 6.999
"""The published step time of POINT."""


def record_runs(
    repeats: Sequence[Sequence[float]],
    *,
    state: RunState = "completed",
    failure: llmb.Failure | None = None,
    reason: str = "",
    workload: dict[str, Any] | None = None,
    provenance: dict[str, Any] | None = None,
    **tables: dict[str, Any],
) -> list[str]:
    """Record one run per list of step times (s), all repeats of one another. Return the ids."""
    target = {"scheduler": "local", "workdir": "/tmp/work", "lock": "/tmp/work.lock"}
    counted = {"repeats": len(repeats)} if len(repeats) > 1 else {}
    spec = {"workload": POINT | (workload or {}) | counted, "target": target, **tables}
    runs = draw_run_ids(llmb.load(spec)).runs
    first = {"first_repeat": runs[0].run.id} if counted else {}
    for each, times_s in zip(runs, repeats, strict=True):
        run = each.run
        record = RunRecord(runs_folder() / run.id)
        created = {"created": "2026-11-01T09:00:00.000000+00:00", **first, **(provenance or {})}
        record.create(tomli_w.dumps(build_run_toml(each, created)), "")
        steps = [llmb.Step(step=number, time_s=time_s, loss=10.0 / number) for number, time_s in enumerate(times_s, 1)]
        summary = summarise(steps, "last")
        metrics = compute_run_metrics(run, summary.step_time_s, None, 989e12) if steps else None
        window, steady = summary.measured(summary.step_time_s), find_steady_state(steps)
        result = attrs.evolve(read_result(record), metrics=metrics, window=window, steady_state=steady)
        if state == "completed" and run.baseline and window:
            candidate = Candidate(repeat=Repeat(window=window, steady_state=steady), objection=None)
            judged = judge_set([candidate], run.baseline.step_time_s, run.tolerance)
            result = attrs.evolve(result, verdict=judged.verdict, reason=judged.reason, interval=judged.interval)
        elif state != "completed":
            reason = reason or (failure.cause if failure else "")
            result = attrs.evolve(result, failure=failure, reason=reason, window=None, window_complete=False)
        record.write_result(result.as_dict(), steps)
        record.add_events([Ended(run_id=run.id, state=state)])
    return [each.run.id for each in runs]
