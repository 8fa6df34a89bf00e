"""llmb as a library: functions of the command line for specs, recipes, logs and comparisons, without a terminal.

Functions import what they call, so that ``llmb.load`` imports neither the code that follows jobs nor that of reports.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmb.analysis.valid_range import range_faults
from llmb.analysis.verdict import TOLERANCE
from llmb.plugins.addresses import absolute_address, framework_of
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.listing import PointFilter
from llmb.recipes.releases import newest_first
from llmb.spec.overrides import apply_overrides
from llmb.spec.resolve import resolve
from llmb.spec.resolve_run import known_accelerators
from llmb.spec.run_of_log import point_of_log, run_of_log
from llmb.spec.spec_tables import read_document
from llmb.spec.targets import name_target
from llmb.values.errors import Fault, LlmbError, LogError, RecipeError, RecordError, SpecError, collect_errors
from llmb.values.recipe import Recipe, Window
from llmb.values.run_states import Until
from llmb.values.toml_files import parse_toml, read_toml
from llmb.values.types.check_arguments import check_arguments
from llmb.values.workload import Workload

if TYPE_CHECKING:
    from llmb.analysis.metrics import Metrics
    from llmb.judging.comparison_values import RunComparison
    from llmb.judging.grade import Grade
    from llmb.parsing.directories import ParsedPath
    from llmb.parsing.parse_log import LogReader, ParsedLog
    from llmb.records.result import RunResult


@check_arguments
def load(
    spec: str | Path | Mapping[str, Any],
    *,
    overrides: str | Iterable[str] = (),
    target: str | None = None,
    registry: PluginRegistry | None = None,
) -> Workload:
    """Load a workload spec from a file, or from tables such as ``{"workload": {...}, "target": {...}}``.

    A string is always a path; `loads` takes text. ``overrides``, one or several, are ``key=value`` with dotted keys; a
    value is read as TOML, else as a string. ``target`` names a table of the targets file. ``registry`` may have loaded
    plugins and recipes already.

    Nothing is started and nothing is written. Raise SpecError with all errors of the spec.
    """
    if isinstance(spec, Mapping):
        return _load(spec, None, overrides, target, registry)
    return _load(read_toml(Path(spec)), str(spec), overrides, target, registry)


@check_arguments
def loads(
    text: str,
    *,
    overrides: str | Iterable[str] = (),
    target: str | None = None,
    registry: PluginRegistry | None = None,
) -> Workload:
    """Load a workload spec from TOML text. The other arguments and errors are those of `load`."""
    return _load(parse_toml(text.removeprefix("\ufeff")), None, overrides, target, registry)


def _load(
    tables: Mapping[str, Any],
    file: str | None,
    overrides: str | Iterable[str],
    target: str | None,
    registry: PluginRegistry | None,
) -> Workload:
    overrides = [overrides] if isinstance(overrides, str) else overrides
    document = read_document(tables, file=file)
    if target is not None:
        name_target(document, target)
    apply_overrides(document, overrides)
    registry = registry or PluginRegistry()
    workload, errors = resolve(document, registry)
    if errors:
        raise SpecError(*errors, *_plugin_errors(workload, registry))
    return workload


def _plugin_errors(workload: Workload, registry: PluginRegistry) -> list[Fault]:
    """Return the errors that plugins find in the runs whose own values are valid."""
    from llmb.plan_runs import validate

    errors: list[Fault] = []
    with collect_errors(errors, LlmbError):
        validate(workload, registry=registry)
    return errors


@check_arguments
def run(workload: Workload, *, until: Until = "ended") -> list[RunResult]:
    """Start a workload and wait until every run has ended, or until every job is submitted.

    Return one result per run, in the order of the sweep. Raise LlmbError.
    """
    from llmb.drive.start import start

    return start(workload).wait(until=until)


@check_arguments
def parse(
    logs: str | Path | Iterable[str | Path],
    *,
    framework: str | None = None,
    recipe: str | None = None,
    gpus: int | None = None,
    window: Window | None = None,
    steps: int | None = None,
    run: int | None = None,
    registry: PluginRegistry | None = None,
) -> ParsedLog:
    """Parse one run from its log, or from the logs of its ranks, as far as they are written.

    ``framework`` is a name or the path of a declared framework, by default that of ``recipe``. A recipe and a number of
    GPUs supply values that the log does not have, such as the global batch size. ``window`` is by default the usual
    window of the recipe or framework. ``steps`` overrides the number of steps that a complete log has according to the
    log itself. ``run`` is one of several runs in the log, from 1, by default the last one. ``registry`` is that of
    `load`. Raise LogError if a log cannot be read or lacks the run, and PluginError for an unknown framework.
    """
    logs = [logs] if isinstance(logs, str | Path) else logs
    reader = _log_reader(framework, recipe, gpus, window, steps, run, registry)
    return reader.read([Path(log) for log in logs])


@check_arguments
def parse_paths(
    paths: Iterable[str | Path],
    *,
    framework: str | None = None,
    recipe: str | None = None,
    gpus: int | None = None,
    window: Window | None = None,
    steps: int | None = None,
    run: int | None = None,
    registry: PluginRegistry | None = None,
) -> list[ParsedPath]:
    """Parse each path: a log as one run, a directory as all logs of the framework in it.

    The other arguments are those of `parse`. Return one value per path, which lists the files that cannot be read
    instead of raising LogError. Raise PluginError for an unknown framework.
    """
    from llmb.parsing.directories import read_path
    from llmb.parsing.recognise_framework import with_writer

    reader = _log_reader(framework, recipe, gpus, window, steps, run, registry)
    return [with_writer(read_path(Path(path), reader), reader.framework, reader.registry) for path in paths]


def _log_reader(
    framework: str | None,
    recipe: str | None,
    gpus: int | None,
    window: Window | None,
    steps: int | None,
    run: int | None,
    registry: PluginRegistry | None,
) -> LogReader:
    """Return the reader of a framework's logs. Raise SpecError if the recipe is one of another framework."""
    from llmb.parsing.parse_log import LogReader

    registry, known_run = registry or PluginRegistry(), None
    if recipe is not None:
        known_run = run_of_log(absolute_address(recipe, Path()), gpus, registry)
        if framework is not None and absolute_address(framework, Path()) != known_run.framework:
            raise SpecError(f"recipe {recipe} is for the framework {known_run.framework}, not {framework}")
        framework = framework or framework_of(recipe)
    elif framework is None:
        message, expected = "neither a framework nor a recipe is given", "the name of a framework"
        raise SpecError(Fault(message=message, expected=f"{expected}, which llmb.recognise_framework() finds"))
    return LogReader(
        framework=framework, registry=registry, window=window, steps_requested=steps, run=run, known_run=known_run
    )


@check_arguments
def list_recipes(where: PointFilter | None = None) -> list[Recipe]:
    """Return the recipes of the installed frameworks, the newest release first. Warn about recipes that are unreadable.

    With ``where``, only the selected recipes are returned, each with the selected points. Raise RecipeError if an
    unknown name in ``where`` is the reason for an empty list.
    """
    registry = PluginRegistry()
    recipes = newest_first(registry.recipes())
    if where is None:
        return recipes
    found = [narrowed for each in recipes if (narrowed := where.narrow(each))]
    known, frameworks = known_accelerators(registry).values(), plugin_names("framework", registry.installed)
    if not found and (errors := list(where.unknown_names(recipes, known, frameworks))):
        raise RecipeError(*errors)
    return found


@check_arguments
def metrics(
    address: str,
    *,
    gpu_type: str,
    dtype: str,
    gpus: int,
    variant: str | None = None,
    step_time_s: float | None = None,
    tflops_per_gpu: float | None = None,
    registry: PluginRegistry | None = None,
) -> Metrics:
    """Compute the metrics of a published configuration from a step time in s, logged TFLOP/s per GPU, or both.

    ``registry`` is that of `load`. Raise RecipeError for an unpublished configuration, PluginError for an unknown
    framework, and LlmbError for values outside 1e-6 to 1e7 s or 1e-6 to 1e6 TFLOP/s.
    """
    from llmb.judging.measure_point import measure_point

    if faults := range_faults(step_time_s, tflops_per_gpu):
        raise LlmbError(*faults)
    registry = registry or PluginRegistry()
    recipe = registry.recipe(address)
    point = point_of_log(recipe, registry, gpu_type, dtype, gpus, variant)
    return measure_point(recipe, point, registry, step_time_s, tflops_per_gpu)


@check_arguments
def grade(
    logs: str | Path | Iterable[str | Path],
    *,
    recipe: str,
    gpu_type: str,
    dtype: str,
    gpus: int,
    variant: str | None = None,
    window: Window | None = None,
    tolerance: float = TOLERANCE,
    steps: int | None = None,
    repeats: bool = False,
    save: bool = False,
    registry: PluginRegistry | None = None,
) -> Grade:
    """Judge the logs of one run's ranks against a published configuration; with ``repeats``, each path is one run.

    A directory contains one log per rank. ``window`` is by default that of the recipe. ``steps`` and ``registry`` are
    those of `parse`. With ``save``, the logs are recorded as runs that are marked as imported. Raise RecipeError for an
    unpublished configuration, PluginError for an unknown framework, LogError if a log cannot be read, and RecordError
    if a run cannot be recorded.
    """
    from llmb.judging.grade import Grader

    paths = [Path(logs)] if isinstance(logs, str | Path) else [Path(log) for log in logs]
    if not paths:
        raise LogError("no log is named")
    if not 0 <= tolerance < 1:
        raise LlmbError(
            Fault(key="tolerance", message=f"{tolerance:g} is out of range", expected="a fraction such as 0.05")
        )
    registry = registry or PluginRegistry()
    found = registry.recipe(recipe)
    grader = Grader(
        recipe=found,
        point=point_of_log(found, registry, gpu_type, dtype, gpus, variant),
        registry=registry,
        window=window or found.window,
        tolerance=tolerance,
        steps=steps,
        repeats=repeats,
    )
    return grader.grade([[path] for path in paths] if repeats else [paths], save=save)


@check_arguments
def compare(a: str, b: str) -> RunComparison:
    """Compare recorded runs. Each side is a run id, several joined by commas, or filters of `llmb runs` in braces.

    ``b`` may also be "baseline", for the published configuration of each run in ``a``. Raise RecordError for a run that
    does not exist, and if ``a`` is "baseline". Raise SpecError for an invalid filter.
    """
    from llmb.judging.compare_runs import compare_runs, compare_with_baseline
    from llmb.records.index.select_runs import select_runs

    if a == "baseline":
        run = "RUN" if b == "baseline" else shlex.quote(b)
        raise RecordError(f"`baseline` can only be the second side; use `llmb compare {run} baseline`")
    if b == "baseline":
        return compare_with_baseline(select_runs(a))
    return compare_runs(select_runs(a), select_runs(b))
