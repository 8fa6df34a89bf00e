"""Metrics and verdicts of bundled records, computed again from their logs and compared with the recorded ones."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from llmb.analysis.metrics import Metrics
from llmb.analysis.verdict import Judgement
from llmb.drive.finalize.measure_and_judge import measure_and_judge
from llmb.judging.grade import Grader
from llmb.judging.save_grade import imported_logs
from llmb.logs.steps.steps_csv import steps_csv
from llmb.plan_runs import plan_run
from llmb.plugins.addresses import address_in, framework_of, is_file_address
from llmb.plugins.find_peak_flops import known_peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.provenance import find_other_gpus
from llmb.records.record import RunRecord
from llmb.reports.bundle_files import describe_files, report_tables, without_folder, write_files
from llmb.spec.choose_published_point import published_point
from llmb.spec.spec_of_run import read_run_toml
from llmb.spec.spec_tables import string_of
from llmb.values.errors import LlmbError, LogError, RecordError, SpecError
from llmb.values.frozen import table_of
from llmb.values.steps import Step


def find_mismatches(
    files: Mapping[str, bytes], run_ids: Sequence[str], registry: PluginRegistry, *, with_tables: bool = False
) -> list[str]:
    """Return the differences between the records of a bundle and what their logs give.

    ``with_tables`` compares the tables of the report, too. Raise PluginError if a plugin is not installed.
    """
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="llmb-bundle-") as folder:
        write_files(folder, files)
        records = [RunRecord(Path(folder, "runs", run_id)) for run_id in run_ids]
        found += [problem.replace(f"{folder}/", "") for problem in _recompute(records, registry)]
        if with_tables:
            tables = without_folder(folder, report_tables(describe_files(folder, run_ids)))
            found += [f"{name} differs from the records" for name in tables if tables[name] != files.get(name)]
    return found


def _recompute(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[str]:
    """Yield the differences between the recorded results of the runs and what their logs give, and damaged records."""
    repeats: dict[str, list[RunRecord]] = {}
    for record in records:
        try:
            _load_plugins(record, registry)
            provenance = record.spec().get("provenance", {})
            if "imported" in provenance:
                repeats.setdefault(provenance.get("first_repeat", record.run_id), []).append(record)
            else:
                yield from (f"{record.run_id}: {problem}" for problem in _recompute_run(record, registry))
        except (RecordError, SpecError) as error:
            yield from _describe_damage(error)
    for imported in repeats.values():
        try:
            yield from _recompute_imports(imported, registry)
        except LogError as error:
            yield f"{imported[0].run_id}: {error}"
        except (RecordError, SpecError) as error:
            yield from _describe_damage(error)


def _load_plugins(record: RunRecord, registry: PluginRegistry) -> None:
    """Load the plugins that a run names. Raise PluginError if one is missing: nothing differs then."""
    recipe, scheduler = string_of(record.spec(), "workload", "recipe"), string_of(record.spec(), "target", "scheduler")
    if recipe and not is_file_address(recipe):
        registry.framework(framework_of(recipe))
    if scheduler:
        registry.scheduler(scheduler)


def _describe_damage(error: LlmbError) -> Iterator[str]:
    """Yield each error of a record on one line, without the lines that a user could add to a spec."""
    yield from (" ".join(str(attrs.evolve(fault, lines="")).split()) for fault in error.faults)


def _recompute_run(record: RunRecord, registry: PluginRegistry) -> Iterator[str]:
    """Yield the differences of a run that llmb started."""
    plan = plan_run(read_run_toml(record.directory / "run.toml", registry), registry)
    run, recorded, completed = plan.run, record.result() or {}, record.state().run_state == "completed"
    logs = LogCopies(plan, record, registry.framework(run.framework), registry.scheduler(plan.target.scheduler))
    logs.start_attempt(record.state().attempt)
    logs.close()
    measured_peak = table_of(recorded, "metrics").get("peak_flops")  # of a CPU, by the machine of the run
    peak = known_peak_flops(run.gpu_type, run.dtype, run.accelerator, run.framework, registry) or measured_peak
    other_gpus = find_other_gpus(record, run)
    measured = measure_and_judge(run, logs.series, peak, completed=completed, other_gpus=other_gpus)
    judged = completed or recorded.get("verdict") in ("pass", "fail")  # a run that did not start has no verdict
    yield from _compare(record, logs.series.steps, measured.metrics, measured.judgement if judged else None)


def _recompute_imports(records: Sequence[RunRecord], registry: PluginRegistry) -> Iterator[str]:
    """Yield the differences of runs that were recorded from existing logs, all repeats of one another."""
    records = sorted(records, key=lambda record: record.spec()["provenance"].get("repeat", 1))
    run = read_run_toml(records[0].directory / "run.toml", registry).run
    recipe = registry.recipe(address_in(run.framework, run.recipe))
    grader = Grader(
        recipe=recipe,
        point=published_point(recipe, run.gpu_type, run.dtype, run.gpus, run.variant),
        registry=registry,
        window=run.window,
        tolerance=run.tolerance,
        steps=records[0].spec()["provenance"].get("steps_asked"),
    )
    graded = grader.describe_saved([imported_logs(record) for record in records])
    for record, each in zip(records, graded, strict=True):
        problems = _compare(record, each.run.log.steps, each.metrics, each.judgement)
        yield from (f"{record.run_id}: {problem}" for problem in problems)


def _compare(
    record: RunRecord, steps: Iterable[Step], metrics: Metrics | None, judgement: Judgement | None
) -> Iterator[str]:
    """Yield the differences between a record and what its logs give. Without a judgement, compare no verdict."""
    text, computed = steps_csv(steps), dict[str, Any]()
    if text.encode() != (record.directory / "steps.csv").read_bytes():
        yield f"steps.csv differs from the logs, which have {len(text.splitlines()) - 1} steps"
    if metrics:
        computed["metrics"] = metrics.as_dict()
    if judgement:
        computed["verdict"] = judgement.verdict
        computed["interval"] = list(judgement.interval) if judgement.interval else None
    yield from _compare_tables("", record.result() or {}, computed)


def _compare_tables(prefix: str, recorded: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that differ. Tables are compared key by key."""
    for name, after in computed.items():
        before = recorded.get(name)
        label = f"{prefix}.{name}" if prefix else name
        if isinstance(after, Mapping):
            yield from _compare_tables(label, table_of(recorded, name), after)
        elif not _agrees(before, after):
            yield f"{label} is {before}, but the logs give {after}"


def _agrees(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_agrees, before, after))
    if isinstance(before, int | float) and isinstance(after, int | float):
        return math.isclose(before, after, rel_tol=1e-9)
    return bool(before == after)
