"""Results of recorded runs, computed again from their logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llmb.analysis.judge_repeats import Repeat, judge_repeats
from llmb.analysis.measuring_window import summarise
from llmb.analysis.metrics import measure_run
from llmb.analysis.steady_state import find_steady_state
from llmb.drive.record import RunRecord
from llmb.drive.run_logs import RunLogs
from llmb.judging.grade import Grader
from llmb.judging.save_grade import GradedLog, imported_logs
from llmb.logs.steps_csv import steps_csv
from llmb.planning import plan_run
from llmb.plugins.recipe_files import find_recipe
from llmb.plugins.registry import PluginRegistry
from llmb.spec.choose_point import published_point
from llmb.spec.export import import_run
from llmb.values.errors import LogError
from llmb.values.steps import Step


def recompute(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[tuple[str, str]]:
    """Yield run ids, each with a difference between the recorded result of the run and what its logs give."""
    repeats: dict[str, list[RunRecord]] = {}
    for record in records:
        provenance = record.spec().get("provenance", {})
        if record.result() is None:
            yield record.run_id, "result.json is missing"
        elif "imported" in provenance:
            repeats.setdefault(provenance.get("first_repeat", record.run_id), []).append(record)
        else:
            yield from ((record.run_id, problem) for problem in _recompute_run(record, registry))
    for imported in repeats.values():
        try:
            yield from _recompute_imports(imported, registry)
        except LogError as error:
            yield imported[0].run_id, str(error)


def _recompute_run(record: RunRecord, registry: PluginRegistry) -> Iterator[str]:
    """Yield the differences of a run that llmb started."""
    recorded = record.result() or {}
    plan = plan_run(import_run(record.directory / "run.toml", registry), registry)
    run = plan.run
    logs = RunLogs(plan, record, registry.framework(run.framework), registry.scheduler(plan.target.scheduler))
    logs.start_attempt(record.state().attempt)
    logs.close()
    steps = logs.series.steps
    yield from _compare_steps(record, steps)
    metrics = recorded.get("metrics") or {}
    summary = summarise(steps, run.window)
    computed = measure_run(run, summary.step_time_s, summary.tflops_per_gpu, metrics.get("peak_flops")).as_dict()
    yield from _compare_tables("metrics", metrics, computed if steps else {})
    window = summary.measured(computed["step_time_s"])
    if recorded.get("interval") and window and run.baseline:
        repeat = Repeat(window=window, steady_state=find_steady_state(steps))
        judgement = judge_repeats([repeat], run.baseline.step_time_s, run.tolerance)
        yield from _compare_tables("", recorded, _verdict(judgement.verdict, judgement.interval))


def _recompute_imports(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[tuple[str, str]]:
    """Yield the differences of runs that were recorded from existing logs, all repeats of one another."""
    records = sorted(records, key=lambda record: record.spec()["provenance"].get("repeat", 1))
    graded = _grader(records[0], registry).describe_saved([imported_logs(record) for record in records])
    for record, each in zip(records, graded, strict=True):
        yield from ((record.run_id, problem) for problem in _compare_import(record, each))


def _grader(record: RunRecord, registry: PluginRegistry) -> Grader:
    """Return what an imported run was graded against."""
    run = import_run(record.directory / "run.toml", registry).run
    recipe = find_recipe(run.recipe, registry.installed)
    return Grader(
        recipe=recipe,
        point=published_point(recipe, run.gpu_type, run.dtype, run.gpus, run.variant),
        registry=registry,
        window=run.window,
        tolerance=run.tolerance,
        steps=record.spec()["provenance"].get("steps_asked"),
    )


def _compare_import(record: RunRecord, graded: GradedLog) -> Iterator[str]:
    recorded = record.result() or {}
    yield from _compare_steps(record, graded.log.steps)
    computed = graded.metrics.as_dict() if graded.metrics else {}
    yield from _compare_tables("metrics", recorded.get("metrics") or {}, computed)
    yield from _compare_tables("", recorded, _verdict(graded.judgement.verdict, graded.judgement.interval))


def _verdict(verdict: str | None, interval: tuple[float, float] | None) -> dict[str, Any]:
    return {"verdict": verdict, "interval": list(interval) if interval else None}


def _compare_steps(record: RunRecord, steps: Iterable[Step]) -> Iterator[str]:
    text = steps_csv(steps)
    if text != (record.directory / "steps.csv").read_text(encoding="utf-8"):
        yield f"steps.csv differs from the logs, which have {len(text.splitlines()) - 1} steps"


def _compare_tables(prefix: str, recorded: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that differ. Tables are compared key by key."""
    for name, after in computed.items():
        before = recorded.get(name)
        label = f"{prefix}.{name}" if prefix else name
        if isinstance(after, Mapping):
            yield from _compare_tables(label, before or {}, after)
        elif not _agrees(before, after):
            yield f"{label} is {before}, but the logs give {after}"


def _agrees(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_agrees, before, after))
    if isinstance(before, int | float) and isinstance(after, int | float):
        return math.isclose(before, after, rel_tol=1e-9)
    return bool(before == after)
