"""One combination's tables to runs: the names in them looked up, and then put together with what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.plugins.call import decoding_options
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.accelerators import accelerators
from llmb.spec.assemble import against_published, assemble_target
from llmb.spec.check import TARGET_KEYS, check_options, check_tables, place_faults
from llmb.spec.doubt import doubtful, keys_of, touches, without
from llmb.spec.impossible import impossible
from llmb.spec.published import choose_point, published_points, with_options
from llmb.spec.tables import SpecTables, TargetTable
from llmb.spec.trial import StandIns, Trial
from llmb.values.errors import Fault, LlmbError, SpecError
from llmb.values.model import Accelerator
from llmb.values.nearest import nearest_name
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Paths, Target
from llmb.values.workload import RunSpec, SourceMap

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class _Parts:
    """What the names of a spec stand for; null, with its fault told, where a name stands for nothing."""

    recipe: Recipe | None
    framework: FrameworkHooks[Any] | None
    scheduler: SchedulerHooks[Any] | None
    points: tuple[Point, ...]
    options: Any
    target_options: Any


@attrs.frozen(kw_only=True)
class Resolved:
    """The runs of a combination; or its faults, with what the plugins are to be asked about."""

    runs: tuple[RunSpec, ...] = ()
    faults: list[Fault] = attrs.field(factory=list)
    trial: Trial | None = None


class Resolver:
    """Turns combinations into runs; recipes and plugins are loaded once however many there are."""

    def __init__(self, pool: PluginRegistry) -> None:
        self._pool = pool
        self._accelerators = known_accelerators(pool)

    def resolve(self, tables: Mapping[str, Any], source_map: SourceMap, doubt: Collection[str] = ()) -> Resolved:
        """The runs of a combination, one for each repeat, or all that is wrong.

        Each rule is asked that reads nothing which is wrong, so that one answer tells all; ``doubt`` has keys that are
        known to be wrong already.
        """
        spec, table, faults = check_tables(tables)
        parts = self._look_up(tables, faults)
        target = _target(table, parts, _string(tables, "workload", "gpu_type"), faults)
        if spec is None or parts.recipe is None:
            return Resolved(faults=faults)
        doubt = {*doubt, *doubtful(faults, tables)}
        doubt.update(_of_variants(parts.recipe, doubt))
        base = _base(spec, parts, doubt, faults)
        if base is None:
            doubt.add("workload.gpus")
        stand_ins = StandIns(
            spec=spec,
            recipe=parts.recipe,
            base=base or (parts.points or parts.recipe.points)[0],
            accelerators=self._accelerators,
            scheduler=parts.scheduler,
        )
        run = stand_ins.run(doubt)
        if run is None:
            return Resolved(faults=faults)
        faults += impossible(run, spec, doubt)
        if faults or doubt or target is None:
            return Resolved(
                faults=faults, trial=_trial(stand_ins, parts, {*doubt, *keys_of(faults)}, target, source_map)
            )
        paths = Paths(run="", cache=target.cache)
        run = against_published(attrs.evolve(run, options=parts.options, paths=paths), parts.recipe, spec)
        target = attrs.evolve(target, gpus_per_node=run.gpus_per_node)
        placed = RunSpec(run=run, target=target, source_map=source_map, repeats=spec.workload.repeats or 1)
        return Resolved(runs=tuple(_repeat(placed, repeat) for repeat in range(1, placed.repeats + 1)))

    def _look_up(self, tables: Mapping[str, Any], faults: list[Fault]) -> _Parts:
        address, gpu_type = _string(tables, "workload", "recipe"), _string(tables, "workload", "gpu_type")
        dtype, name = _string(tables, "workload", "dtype"), _string(tables, "target", "scheduler")
        recipe = _collect(faults, "workload.recipe", lambda: self._pool.recipe(address)) if address else None
        framework = _collect(faults, "workload.recipe", lambda: self._framework(address)) if address else None
        scheduler = _collect(faults, "target.scheduler", lambda: self._pool.scheduler(name)) if name else None
        accelerator = self._accelerator(gpu_type, faults) if gpu_type else None
        points: tuple[Point, ...] = ()
        suits = _suits(accelerator, recipe, faults)
        has_dtype = dtype is not None and _has_dtype(accelerator if suits else None, dtype, recipe, faults)
        if accelerator and suits and dtype and has_dtype and recipe:
            own = "global_batch_size" in _table(tables, "parallelism")
            points = published_points(recipe, accelerator.name, dtype, faults, own_parallelism=own)
            points = with_options(recipe, points, tables.get("framework"))
        if accelerator and recipe:
            faults += _memory(accelerator, recipe)
        return _Parts(
            recipe=recipe,
            framework=framework,
            scheduler=scheduler,
            points=points,
            options=_options(framework, tables.get("framework", {}), "framework", faults),
            target_options=_options(scheduler, tables.get("target", {}), "target", faults, TARGET_KEYS),
        )

    def _framework(self, address: str) -> FrameworkHooks[Any] | None:
        name, slash, _ = address.partition("/")
        return self._pool.framework(name) if slash else None

    def _accelerator(self, name: str, faults: list[Fault]) -> Accelerator | None:
        known = self._accelerators
        if name not in known:
            expected = f"one of {', '.join(sorted(known))}"
            nearest = nearest_name(name, known)
            faults.append(Fault(message=f'is "{name}"', key="workload.gpu_type", expected=expected, nearest=nearest))
        return known.get(name)


def _repeat(placed: RunSpec, repeat: int) -> RunSpec:
    return attrs.evolve(placed, run=attrs.evolve(placed.run, repeat=repeat))


def known_accelerators(pool: PluginRegistry) -> Mapping[str, Accelerator]:
    """The core's table, and over it what the installed extensions add."""
    return {**accelerators(), **{each.name: each for each in pool.accelerators()}}


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The table where it is one; what else it is, is told as a fault."""
    table = tables.get(name)
    return table if isinstance(table, dict) else {}


def _string(tables: Mapping[str, Any], table: str, key: str) -> str | None:
    """The value where it is a string; what else it is, is told as a fault of its table."""
    value = _table(tables, table).get(key)
    return value if isinstance(value, str) else None


def _collect(faults: list[Fault], key: str, load: Callable[[], T]) -> T | None:
    """What ``load`` gives, or null with its faults noted at ``key``."""
    try:
        return load()
    except LlmbError as error:
        faults.extend(fault if fault.file else attrs.evolve(fault, key=key) for fault in error.faults)
        return None


def _base(spec: SpecTables, parts: _Parts, doubt: Collection[str], faults: list[Fault]) -> Point | None:
    """The published point that the run starts from; null where none is, or the keys that choose it are in doubt."""
    if parts.recipe is None or not parts.points or touches(doubt, ("workload.gpus", "parallelism")):
        return None
    return choose_point(spec, parts.recipe, parts.points, faults)


def _trial(
    stand_ins: StandIns, parts: _Parts, doubt: Collection[str], target: Target[Any] | None, source_map: SourceMap
) -> Trial | None:
    """Null where the framework, or its options without what is wrong, cannot be had."""
    return None if parts.options is None else stand_ins.trial(parts.options, frozenset(doubt), target, source_map)


def _of_variants(recipe: Recipe, doubt: Collection[str]) -> Iterator[str]:
    """The recipe's division is in doubt too where an option is that chooses between its variants."""
    if touches(doubt, (f"framework.{name}" for variant in recipe.variants for name in variant.options)):
        yield "parallelism"


def _options(
    plugin: FrameworkHooks[Any] | SchedulerHooks[Any] | None,
    table: Any,
    key: str,
    faults: list[Fault],
    also: tuple[str, ...] = (),
) -> Any:
    """The table, without the core's keys (``also``), in the plugin's own class; [framework] without what is wrong."""
    if plugin is None or not isinstance(table, dict):
        return None
    own = {name: value for name, value in table.items() if name not in also}
    with decoding_options(plugin):
        options, wrong = check_options(own, plugin.options, key, also)
        faults.extend(wrong)
        if key == "framework" and touches(keys_of(faults), [key]):
            return check_options(without(own, keys_of(faults), key), plugin.options, key)[0]
        return options


def _target(table: TargetTable | None, parts: _Parts, gpu_type: str | None, faults: list[Fault]) -> Target[Any] | None:
    """Where the run goes; null where place or options are wrong, and that is told."""
    if table is None:
        return None
    if parts.scheduler is None or parts.target_options is None:
        faults += place_faults(table)
        return None
    try:
        return assemble_target(table, parts.scheduler, parts.target_options, (gpu_type,) if gpu_type else ())
    except SpecError as error:
        faults += error.faults
        return None


def _suits(accelerator: Accelerator | None, recipe: Recipe | None, faults: list[Fault]) -> bool:
    """Whether the GPU has a dtype of the recipe; else that is told of it, since no other dtype could mend it."""
    dtypes = _dtypes(recipe)
    if accelerator is None or recipe is None or not accelerator.dtypes or {*accelerator.dtypes} & {*dtypes}:
        return True
    message = f'is "{accelerator.name}", which has none of the dtypes of {recipe.address}: {", ".join(dtypes)}'
    expected = f"one of {', '.join(dict.fromkeys(point.gpu_type for point in recipe.points))}"
    faults.append(Fault(message=message, key="workload.gpu_type", expected=expected))
    return False


def _dtypes(recipe: Recipe | None) -> tuple[str, ...]:
    """Those in which a recipe is published."""
    return tuple(dict.fromkeys(point.dtype for point in recipe.points)) if recipe else ()


def _has_dtype(accelerator: Accelerator | None, dtype: str, recipe: Recipe | None, faults: list[Fault]) -> bool:
    """Whether the GPU has it; of one that is not known, whether the recipe has it. Else told, with what both have."""
    of_recipe = _dtypes(recipe)
    known = accelerator.dtypes if accelerator else of_recipe
    if dtype in known or not known:
        return True
    both = [each for each in known if each in of_recipe] or known
    whose = accelerator.name if accelerator else recipe.address if recipe else ""
    message = f'is "{dtype}", which {whose} does not have'
    fault = Fault(message=message, key="workload.dtype", expected=" or ".join(both), nearest=nearest_name(dtype, both))
    faults.append(fault)
    return False


def _memory(accelerator: Accelerator, recipe: Recipe) -> list[Fault]:
    has, needs = accelerator.memory_gb, recipe.memory_gb
    if not has or not needs or has >= needs:
        return []
    message = f"{accelerator.name} has {has:g} GB of memory"
    return [Fault(message=message, key="workload.gpu_type", expected=f"at least {needs:g} GB for {recipe.address}")]
