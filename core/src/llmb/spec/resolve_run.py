"""Resolve one combination of a spec to its runs: look up recipe, plugins and accelerator, and check the result."""

import functools
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import attrs

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.paths import config_folder
from llmb.plugins.addresses import framework_of, is_file_address, split_address
from llmb.plugins.read_pack import example_table
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.accelerators import accelerators
from llmb.spec.assemble_run import assemble_run, assemble_target
from llmb.spec.check_values import check_host_and_workdir
from llmb.spec.choose_published_point import choose_point, published_points, select_variant
from llmb.spec.cross_checks import find_conflicts
from llmb.spec.decode import TableDecoder, decode_options
from llmb.spec.expand_sweep import Combination
from llmb.spec.follow_up_errors import overlaps, suspect_keys
from llmb.spec.gpu_and_dtype import check_dtype, check_memory
from llmb.spec.key_hints import KeyHints, merge_key_hints
from llmb.spec.latest_result import LatestResult
from llmb.spec.published_baseline import with_baseline
from llmb.spec.spec_tables import string_of
from llmb.spec.workload_tables import SpecTables, TargetTable
from llmb.values.errors import Fault, LlmbError, collect_errors
from llmb.values.frozen import table_of
from llmb.values.model import Accelerator
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Target
from llmb.values.texts.error_text import format_name, unknown_name
from llmb.values.workload import RunSpec


@attrs.frozen(kw_only=True)
class _Parts:
    """The parts that a spec names, loaded. A part is None if its name is missing or unknown."""

    recipe: Recipe | None
    framework: FrameworkHooks[Any] | None
    scheduler: SchedulerHooks[Any] | None
    accelerator: Accelerator | None
    points: tuple[Point, ...]


class RunResolver:
    """Resolves combinations to runs. Each recipe and each plugin is loaded once for all combinations.

    What depends only on tables that a combination shares with the previous one is not computed again.
    """

    def __init__(self, registry: PluginRegistry, *, any_target: bool = False) -> None:
        self._registry = registry
        self._any_target = any_target
        self._accelerators = known_accelerators(registry)
        self._load = functools.cache(_load)
        self._tables = TableDecoder()
        self._decode_plugin_tables = LatestResult(_decode_plugin_tables)
        self._find_points = LatestResult(_find_points)
        self._set_gpus_per_node = LatestResult(lambda target, number: attrs.evolve(target, gpus_per_node=number))

    def resolve(
        self, combination: Combination, suspects: Collection[str] = ()
    ) -> tuple[tuple[RunSpec, ...], list[Fault]]:
        """Return the runs of a combination, one for each repeat, and the errors of its values.

        ``suspects`` are keys with errors that are reported elsewhere. With suspects or errors, there are no runs.
        """
        tables = combination.tables
        spec, target_table, errors = self._tables.decode(tables)
        parts = self._look_up(tables, errors)
        gpu_type = string_of(tables, "workload", "gpu_type")
        options, target, wrong = self._decode_plugin_tables(
            parts.framework, parts.scheduler, tables.get("framework"), tables.get("target"), target_table, gpu_type
        )
        errors += wrong
        if spec is None or parts.recipe is None:
            return (), errors
        suspects = {*suspects, *suspect_keys(errors, tables)}
        per_node = _gpus_per_node(spec, parts, any_target=self._any_target)
        run = point = None
        if parts.points and not (suspects and overlaps(suspects, _read_keys(parts.recipe))):
            point = choose_point(spec, parts.recipe, parts.points, per_node, errors)
        if point and parts.accelerator:
            cache = target.cache if target else ""
            run = assemble_run(
                spec, parts.recipe, point, parts.accelerator, gpus_per_node=per_node, options=options, cache=cache
            )
        errors += find_conflicts(spec, parts.recipe, run, parts.framework, suspects)
        if errors or suspects or run is None or target is None:
            return (), errors
        run = with_baseline(run, parts.recipe, spec)
        run_spec = RunSpec(
            run=run,
            target=self._set_gpus_per_node(target, run.gpus_per_node),
            swept=combination.swept,
            repeats=spec.workload.repeats or 1,
            recipe_copy=parts.recipe.copy,
            source_map=combination.source_map,
        )
        return tuple(_repeat(run_spec, number) for number in range(1, run_spec.repeats + 1)), []

    def find_key_hints(self, tables: Mapping[str, Any]) -> KeyHints:
        """Return hints on keys of the spec: those of core, and those of the run's plugins if they can be loaded."""
        scheduler_name = string_of(tables, "target", "scheduler")
        framework_name = framework_of(string_of(tables, "workload", "recipe") or "") or None
        scheduler, _ = self._load("target.scheduler", self._registry.scheduler, scheduler_name)
        framework, _ = self._load("workload.recipe", self._registry.framework, framework_name)
        return merge_key_hints(scheduler.key_hints if scheduler else {}, framework.key_hints if framework else {})

    def _look_up(self, tables: Mapping[str, Any], errors: list[Fault]) -> _Parts:
        address, gpu_type = string_of(tables, "workload", "recipe"), string_of(tables, "workload", "gpu_type")
        dtype, variant = string_of(tables, "workload", "dtype"), string_of(tables, "workload", "variant")
        name = string_of(tables, "target", "scheduler")
        recipe, recipe_errors = self._load("workload.recipe", self._registry.recipe, address)
        framework, framework_errors = self._load("workload.recipe", self._registry.framework, _framework(address))
        errors += recipe_errors + framework_errors
        accelerator = self._accelerator(gpu_type, errors) if gpu_type is not None else None
        scheduler, scheduler_errors = self._load("target.scheduler", self._registry.scheduler, name)
        errors += scheduler_errors
        own_batch = "global_batch_size" in table_of(tables, "parallelism")
        points, wrong = self._find_points(recipe, accelerator, dtype, variant, tables.get("framework"), own_batch)
        errors += wrong
        return _Parts(recipe=recipe, framework=framework, scheduler=scheduler, accelerator=accelerator, points=points)

    def _accelerator(self, name: str, errors: list[Fault]) -> Accelerator | None:
        known = self._accelerators
        if name not in known:
            errors.append(unknown_gpu_type(name, known))
        elif len(places := self._registry.accelerator_places(name)) > 1:
            message = f"GPU type {name} is defined by {' and '.join(places)}; remove all except one"
            errors.append(Fault(message=message, key="workload.gpu_type"))
        return known.get(name)


def _load(key: str, load: Callable[[str], Any], name: str | None) -> tuple[Any, tuple[Fault, ...]]:
    """Return what ``load`` returns for a name, or None and its errors at ``key``."""
    if name is None:
        return None, ()
    try:
        return load(name), ()
    except LlmbError as error:
        return None, tuple(_at_key(each, key) for each in error.faults)


def _at_key(error: Fault, key: str) -> Fault:
    """Return an error with the key of the spec whose value it concerns. An error in a file keeps its place there."""
    if error.file and os.path.exists(error.file):
        return error
    message = f"{error.file}: {error.message}" if error.file else error.message
    return attrs.evolve(error, message=message, file=None, key=key)


def unknown_gpu_type(name: str, known: Iterable[str]) -> Fault:
    """Return the error of an unknown GPU type, with the lines that define it unless it is near a known one."""
    error = unknown_name(f"unknown GPU type {format_name(name)}", name, sorted(known), key="workload.gpu_type")
    lines = "" if error.nearest else example_table(name)  # most probably, it is misspelt
    below = " with these lines" if lines else ""
    expected = f"{error.expected}, or a table in {config_folder() / 'accelerators.toml'}{below}"
    return attrs.evolve(error, expected=expected, lines=lines)


def known_accelerators(registry: PluginRegistry) -> Mapping[str, Accelerator]:
    """Return the accelerators by name: the core's table, and over it those of the installed extensions."""
    return {**accelerators(), **{each.name: each for each in registry.accelerators()}}


def _framework(address: str | None) -> str | None:
    framework, name = split_address(address or "")
    return framework if name or is_file_address(framework) else None


def _find_points(
    recipe: Recipe | None,
    accelerator: Accelerator | None,
    dtype: str | None,
    variant: str | None,
    options: Any,
    own_batch: bool,
) -> tuple[tuple[Point, ...], list[Fault]]:
    """Return the published points for this GPU type and dtype, and the errors; no points if they do not fit together.

    ``options`` is the table [framework]. With ``own_batch``, the spec sets the global batch size.
    """
    errors = [*check_memory(accelerator, recipe)] if accelerator and recipe else []
    misfits = [*check_dtype(recipe, accelerator, dtype, own_batch=own_batch)]
    if misfits or not (recipe and accelerator and dtype):
        return (), [*errors, *misfits]
    points = published_points(recipe, accelerator.name, dtype)
    return select_variant(recipe, points, variant, options, errors), errors


def _decode_plugin_tables(
    framework: FrameworkHooks[Any] | None,
    scheduler: SchedulerHooks[Any] | None,
    framework_table: Any,
    scheduler_table: Any,
    target_table: TargetTable | None,
    gpu_type: str | None,
) -> tuple[Any, Target[Any] | None, list[Fault]]:
    """Return the options of the framework, the target, and all errors. A part is None if its table is invalid."""
    errors: list[Fault] = []
    options = decode_options(framework, framework_table, "framework", errors)
    target_options = decode_options(scheduler, scheduler_table, "target", errors)
    target = None
    if target_table and scheduler is not None and target_options is not None:
        with collect_errors(errors):
            target = assemble_target(target_table, scheduler, target_options, (gpu_type,) if gpu_type else ())
    elif target_table:
        errors += check_host_and_workdir(target_table)
    return options, target, errors


def _gpus_per_node(spec: SpecTables, parts: _Parts, *, any_target: bool) -> int:
    """Return the GPUs of the run on each node. With ``any_target``, full nodes have the usual size."""
    gpus = spec.workload.gpus
    usual = parts.accelerator.gpus_per_node if parts.accelerator else gpus
    if any_target:
        return gpus if gpus % usual else usual
    single_node = parts.scheduler is not None and parts.scheduler.single_node
    return min(gpus if single_node else spec.gpus_per_node or usual, gpus)  # a part of one node is allowed


def _read_keys(recipe: Recipe) -> tuple[str, ...]:
    """Return the keys of a spec that select the published point."""
    variant_keys = (f"framework.{name}" for point in recipe.points for name in point.options)
    return ("workload.gpus", "workload.variant", "parallelism.global_batch_size", *variant_keys)


def _repeat(run_spec: RunSpec, number: int) -> RunSpec:
    return attrs.evolve(run_spec, run=attrs.evolve(run_spec.run, repeat=number)) if number > 1 else run_spec
