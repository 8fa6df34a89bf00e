"""llmb as a library: what the command line does, without a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from llmb.analysis.metrics import Metrics, measure
from llmb.analysis.valid_range import STEP_TIME_S, TFLOPS_PER_GPU, possible
from llmb.drive.observe import Observer
from llmb.drive.result import RunResult
from llmb.drive.runs import start
from llmb.parsing.parse import ParsedLog, parse_run
from llmb.planning import refusals
from llmb.plugins.peak_flops import known_peak_flops
from llmb.plugins.recipe_files import load_recipe
from llmb.plugins.registry import PluginRegistry
from llmb.spec.load import resolve_document
from llmb.spec.published import published_point
from llmb.spec.read import parse_toml, read_document, read_toml
from llmb.spec.resolve import known_accelerators
from llmb.values.errors import Fault, LlmbError
from llmb.values.recipe import Window
from llmb.values.workload import Workload


def load(
    spec: str | Path | Mapping[str, Any], *, overrides: str | Iterable[str] = (), target: str | None = None
) -> Workload:
    """Load a workload spec from a file, or from tables such as ``{"workload": {...}, "target": {...}}``.

    A string is always a path; `loads` takes text. ``overrides``, one or several, are ``key=value`` with dotted keys; a
    value is read as TOML, else as a string. ``target`` names a table of the targets file.

    Nothing is started and nothing is written. Raises SpecError with all errors of the spec.
    """
    if isinstance(spec, Mapping):
        return _load(spec, None, overrides, target)
    return _load(read_toml(Path(spec)), str(spec), overrides, target)


def loads(text: str, *, overrides: str | Iterable[str] = (), target: str | None = None) -> Workload:
    """Load a workload spec from TOML text. The other arguments and errors are those of `load`."""
    return _load(parse_toml(text), None, overrides, target)


def _load(tables: Mapping[str, Any], file: str | None, overrides: str | Iterable[str], target: str | None) -> Workload:
    overrides = [overrides] if isinstance(overrides, str) else overrides
    document = read_document(tables, file=file, overrides=overrides, target=target)
    return resolve_document(document, PluginRegistry(), refusals)


def run(workload: Workload, *, detach: bool = False, observer: Observer | None = None) -> list[RunResult]:
    """Run a workload and wait for its end; with ``detach`` only until nothing is left to submit.

    Returns how each run ended, in the order of the sweep. Raises LlmbError.
    """
    session = start(workload, observer=observer)
    session.drive(detach=detach)
    return session.results


def parse(
    logs: str | Path | Iterable[str | Path], *, framework: str, window: Window | None = None, steps: int | None = None
) -> ParsedLog:
    """One run, from its log or from those of its ranks, read to their present end.

    ``logs`` is the log, or those of the ranks. ``window`` is the framework's usual one where none is given; ``steps``
    is how many a whole run has, where the log itself is not to be believed. Raises LogError where a log cannot be
    read, PluginError where the framework's plugin is not installed.
    """
    logs = [logs] if isinstance(logs, str | Path) else logs
    return parse_run([Path(log) for log in logs], framework, PluginRegistry(), window, steps)


def metrics(
    address: str,
    *,
    gpu_type: str,
    dtype: str,
    gpus: int,
    step_time_s: float | None = None,
    tflops_per_gpu: float | None = None,
) -> Metrics:
    """The figures of one published point for a step time (seconds), logged TFLOP/s per GPU, or both.

    Raises RecipeError where the point is not published, PluginError where its framework is not installed, LlmbError
    for a figure that cannot be: outside 1e-6 to 1e7 s, or 1e-6 to 1e6 TFLOP/s.
    """
    _refuse_impossible(step_time_s, tflops_per_gpu)
    recipe = load_recipe(address)
    point = published_point(recipe, gpu_type, dtype, gpus)
    pool = PluginRegistry()
    peak = known_peak_flops(gpu_type, dtype, known_accelerators(pool).get(gpu_type), recipe.framework, pool)
    return measure(
        model=point.model,
        flop_formula=recipe.flop_formula,
        mfu_from=recipe.mfu_from,
        global_batch_size=point.parallelism.global_batch_size,
        gpus=gpus,
        step_time_s=step_time_s,
        tflops_per_gpu=tflops_per_gpu,
        peak_flops=peak,
        proxy=point.proxy,
        baseline=point.baseline,
    )


def _refuse_impossible(step_time_s: float | None, tflops_per_gpu: float | None) -> None:
    given = (
        ("a step time of {:g} s", step_time_s, STEP_TIME_S, "s"),
        ("{:g} TFLOP/s per GPU", tflops_per_gpu, TFLOPS_PER_GPU, "TFLOP/s"),
    )
    faults = [
        Fault(message=f"{told.format(value)} cannot be", expected=f"{bounds[0]:g} to {bounds[1]:g} {unit}")
        for told, value, bounds, unit in given
        if value is not None and possible(value, bounds) is None
    ]
    if faults:
        raise LlmbError(*faults)
