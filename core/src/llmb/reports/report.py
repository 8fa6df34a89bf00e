"""Reports: recorded runs with their repeats, steps, verdicts and settings, as values for renderers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from llmb.analysis.measuring_window import mean_of_known
from llmb.judging.differences import KINDS, NOT_SET, describe_settings, kind_of_key
from llmb.judging.judge_repeats import RepeatSet, find_repeats, judge_sets
from llmb.plugins.registry import PluginRegistry
from llmb.records.index.select_runs import select_runs
from llmb.records.log_copies.mask_secrets import SecretMask, known_secrets
from llmb.records.record import RunRecord
from llmb.records.result import RunResult
from llmb.values.errors import LlmbError, RecordError
from llmb.values.report_content import Report, ReportedRun, ReportedSet, ReportedSetting
from llmb.values.texts.printable import printable_line
from llmb.values.types.check_arguments import check_arguments
from llmb.version import VERSION

OWN_FIELDS = ("workload.recipe", "workload.gpu_type", "workload.dtype", "workload.gpus", "workload.variant")
"""Swept keys that are fields of a set."""


@check_arguments
def report(runs: str | Iterable[str]) -> Report:
    """Return recorded runs and their repeats as a report, for `junit_xml`, `runs_csv` or a renderer of an extension.

    Each of ``runs`` is a run id or unique prefix, several joined by commas, or filters of `llmb runs` in braces. Raise
    RecordError for a run that does not exist, and SpecError for an invalid filter.
    """
    return describe_runs(find_repeats(select_runs(runs)))


def describe_runs(found: Sequence[RunResult], *, masked: bool = False) -> Report:
    """Return the report on exactly these runs. ``masked`` states that their records contain no secret."""
    clean = Cleaner([] if masked else known_secrets(()))
    registry = PluginRegistry()
    runs = {each.run_id: _read_run(each, registry, clean) for each in found}
    by_id = {each.run_id: each for each in found}
    sets = [_read_set(each, runs, by_id, clean) for each in judge_sets(found)]
    return Report(sets=tuple(sets), settings=tuple(_collect_settings(list(runs.values()))), llmb_version=VERSION)


@check_arguments
def read_reported_runs(results: Iterable[RunResult]) -> list[ReportedRun]:
    """Return runs with their steps and settings, for `runs_csv`."""
    registry, clean = PluginRegistry(), Cleaner(known_secrets(()))
    return [_read_run(each, registry, clean) for each in results]


class Cleaner:
    """Replacement of each text of a value by one printable line, with asterisks for secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._mask = SecretMask(secrets)

    def __call__(self, value: Any) -> Any:
        """Return the value with clean text in all mappings and lists."""
        if isinstance(value, str):
            return self._mask.mask_text(printable_line(value))
        if isinstance(value, Mapping):
            return {self(str(key)): self(each) for key, each in value.items()}
        return [self(each) for each in value] if isinstance(value, list | tuple) else value


def _read_run(result: RunResult, registry: PluginRegistry, clean: Cleaner) -> ReportedRun:
    """Return a run with its steps and settings; without those that a damaged record no longer has."""
    spec: dict[str, Any] = {}
    steps: Mapping[str, Sequence[float | None]] = {}
    with suppress(RecordError):
        spec = RunRecord(Path(result.directory)).spec()
    with suppress(RecordError):
        steps = result.steps
    workload, target = spec.get("workload", {}), spec.get("target", {})
    return ReportedRun(
        result=clean(result.as_dict()),
        steps=clean(steps),
        settings=clean(describe_settings(spec)),
        framework=clean((result.recipe or "").partition("/")[0]),
        release=clean(_find_release(result, registry)),
        image=clean(str(workload.get("image", ""))),
        target=clean(str(target.get("name") or target.get("host") or target.get("scheduler", ""))),
    )


def _find_release(result: RunResult, registry: PluginRegistry) -> str:
    """Return the release of a run's recipe, or "" if the recipe is not installed."""
    if result.metrics and result.metrics.baseline:
        return result.metrics.baseline.release
    try:
        return registry.recipe(registry.recorded_address(result.recipe or "")).release
    except LlmbError:
        return ""


def _read_set(
    each: RepeatSet, runs: Mapping[str, ReportedRun], results: Mapping[str, RunResult], clean: Cleaner
) -> ReportedSet:
    members = [results[run_id] for run_id in each.runs]
    first = members[0]
    left_out = each.left_out if len(each.left_out) < len(members) else ()  # if no repeat counts, the reason explains it
    measured = [run for run in members if run.metrics and run.window_complete is not False]
    kept = [run for run in measured if run.run_id not in left_out]
    baselines = [run.metrics.baseline for run in members if run.metrics and run.metrics.baseline]
    return ReportedSet(
        recipe=clean(first.recipe or "unknown recipe"),
        gpu_type=clean(first.gpu_type or ""),
        dtype=clean(first.dtype or ""),
        gpus=first.gpus,
        variant=clean(first.variant) if first.variant else None,
        changes={key: str(value) for key, value in clean(first.sweep).items() if key not in OWN_FIELDS},
        runs=tuple(runs[run_id] for run_id in each.runs),
        left_out=left_out,
        step_time_s=mean_of_known(run.metrics.step_time_s for run in kept if run.metrics),
        published_step_time_s=baselines[0].step_time_s if baselines else None,
        step_time_ratio=each.step_time_ratio,
        interval=each.interval,
        tolerance=next((run.tolerance for run in members if run.tolerance is not None), None),
        verdict=each.verdict,
        reason=clean(each.reason),
    )


def _collect_settings(runs: Sequence[ReportedRun]) -> list[ReportedSetting]:
    """Return the settings of all runs, ranked by kind."""
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    found = [ReportedSetting(kind=kind_of_key(key), key=key, values=_values(key, runs)) for key in keys]
    order = list(KINDS)
    return sorted(found, key=lambda each: (order.index(each.kind), each.key))


def _values(key: str, runs: Sequence[ReportedRun]) -> dict[str, tuple[str, ...]]:
    """Return the values of a setting, the most frequent one first, each with the runs that have it.

    What an imported run does not state is unknown, and not "not set".
    """
    ids: dict[str, list[str]] = {}
    for run in runs:
        if key not in run.settings and run.result.get("imported"):
            continue
        ids.setdefault(run.settings.get(key, NOT_SET), []).append(run.run_id)
    return {value: tuple(ids[value]) for value in sorted(ids, key=lambda value: -len(ids[value]))}
