"""One point's typed tables to runs: the recipe's values filled in, plugin options checked, the arithmetic verified."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from llmb.catalog.accelerators import accelerators
from llmb.hookspecs import FrameworkHooks, SchedulerHooks
from llmb.paths import home_folder
from llmb.plugins.pool import PluginPool
from llmb.plugins.recipes import load_recipe
from llmb.spec.check import check_options
from llmb.spec.published import choose_point, differences, override_model, override_parallelism
from llmb.spec.tables import SpecTables, TargetTable
from llmb.values.errors import Fault, LlmbError
from llmb.values.job import Image, Mount
from llmb.values.model import Accelerator
from llmb.values.recipe import Point, Recipe, Window
from llmb.values.rules import parallelism_faults
from llmb.values.run import Paths, Profile, Run, Target
from llmb.values.workload import PlacedRun

TOLERANCE = 0.05  # how far above the baseline a step time may lie where the spec does not say


class UnresolvableError(Exception):
    """What a spec asks for cannot be; with every fault that could be found."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


class Resolver:
    """Turns points into runs; recipes and plugins are loaded once however many points there are."""

    def __init__(self, pool: PluginPool, run_id: Callable[[str], str]) -> None:
        self._pool = pool
        self._run_id = run_id
        self._recipes: dict[str, Recipe] = {}
        self._accelerators = known_accelerators(pool)

    def resolve(self, spec: SpecTables) -> tuple[PlacedRun, ...]:
        """The point's runs, one for each repeat. Raises UnresolvableError."""
        faults: list[Fault] = []
        recipe = _collect(faults, "workload.recipe", lambda: self._recipe(spec.workload.recipe))
        framework = _collect(faults, "workload.recipe", lambda: self._framework(spec.workload.recipe))
        scheduler = _collect(faults, "target.scheduler", lambda: self._pool.scheduler(spec.target.scheduler))
        accelerator = self._accelerator(spec, faults)
        options = _options(framework, spec.framework, "framework", faults)
        target = _target(spec, scheduler, faults)
        if recipe is None or accelerator is None:
            raise UnresolvableError(*faults)
        base = choose_point(spec, recipe, faults)
        if base is None or faults or scheduler is None or target is None:
            raise UnresolvableError(*faults)
        run = _run(spec, recipe, base, accelerator, scheduler.single_node, options)
        if wrong := _impossible(run, recipe, spec):
            raise UnresolvableError(*wrong)
        return tuple(self._placed(run, target, repeat) for repeat in range(1, (spec.workload.repeats or 1) + 1))

    def _placed(self, run: Run[Any], target: Target[Any], repeat: int) -> PlacedRun:
        run_id = self._run_id(run.name)
        return PlacedRun(run=attrs.evolve(run, id=run_id, repeat=repeat, paths=target.paths(run_id)), target=target)

    def _recipe(self, address: str) -> Recipe:
        if address not in self._recipes:
            self._recipes[address] = load_recipe(address)
        return self._recipes[address]

    def _framework(self, address: str) -> FrameworkHooks[Any] | None:
        name, slash, _ = address.partition("/")
        return self._pool.framework(name) if slash else None

    def _accelerator(self, spec: SpecTables, faults: list[Fault]) -> Accelerator | None:
        name, known = spec.workload.gpu_type, self._accelerators
        if name in known:
            return known[name]
        nearest = difflib.get_close_matches(name, list(known), n=1)
        faults.append(
            Fault(
                message=f'is "{name}"',
                key="workload.gpu_type",
                expected=f"one of {', '.join(sorted(known))}",
                nearest=nearest[0] if nearest else None,
            )
        )
        return None


def known_accelerators(pool: PluginPool) -> Mapping[str, Accelerator]:
    """The core's table, and over it what the installed extensions add."""
    added = [each for extension in pool.extensions for each in extension.accelerators()]
    return {**accelerators(), **{each.name: each for each in added}}


def _collect(faults: list[Fault], key: str, load: Callable[[], Any]) -> Any:
    """What ``load`` gives, or null with its faults noted at ``key``."""
    try:
        return load()
    except LlmbError as error:
        faults.extend(fault if fault.file else attrs.evolve(fault, key=key) for fault in error.faults)
        return None


def _options(plugin: FrameworkHooks[Any] | None, table: Mapping[str, Any], key: str, faults: list[Fault]) -> Any:
    if plugin is None:
        return None
    options, wrong = check_options(table, plugin.options, key)
    faults.extend(wrong)
    return options


def _target(spec: SpecTables, scheduler: SchedulerHooks[Any] | None, faults: list[Fault]) -> Target[Any] | None:
    if scheduler is None:
        return None
    own = tuple(field.name for field in attrs.fields(TargetTable))
    options, wrong = check_options(spec.target_options, scheduler.options, "target", own)
    faults.extend(wrong)
    if spec.target.host and not spec.target.workdir:
        faults.append(
            Fault(
                message="is missing",
                key="target.workdir",
                expected=f"a directory of {spec.target.host} that all its nodes share",
            )
        )
    if options is None:
        return None
    return Target(
        scheduler=spec.target.scheduler,
        name=spec.target.name,
        host=spec.target.host,
        workdir=spec.target.workdir or str(home_folder() / "work"),
        options=options,
        gpu_types=(spec.workload.gpu_type,),
    )


def _run(
    spec: SpecTables, recipe: Recipe, base: Point, accelerator: Accelerator, single_node: bool, options: Any
) -> Run[Any]:
    workload = spec.workload
    per_node = workload.gpus if single_node else spec.target.gpus_per_node or accelerator.gpus_per_node
    per_node = min(per_node, workload.gpus)  # a part of one node is allowed
    window: Window = spec.measure.window or recipe.window
    image = Image(ref=workload.image) if workload.image else recipe.image
    if recipe.image is not None and workload.image == recipe.image.ref:
        image = recipe.image
    run: Run[Any] = Run(
        id="",
        name=f"{workload.recipe.partition('/')[2]}-{workload.gpu_type}-{workload.dtype}-{workload.gpus}".lower(),
        recipe=recipe.address,
        release=recipe.release,
        gpu_type=workload.gpu_type,
        dtype=workload.dtype,
        gpus=workload.gpus,
        gpus_per_node=per_node,
        steps=workload.steps or recipe.steps,
        model=override_model(base.model, spec.model),
        parallelism=override_parallelism(base.parallelism, spec.parallelism),
        flop_formula=recipe.flop_formula,
        mfu_from=recipe.mfu_from,
        window=window,
        tolerance=spec.measure.tolerance or TOLERANCE,
        proxy=base.proxy or override_model(base.model, spec.model) != base.model,
        recompute_layers=base.recompute_layers,
        offload_layers=base.offload_layers,
        cuda_graphs=base.cuda_graphs,
        image=image,
        time_limit_s=workload.time_limit or recipe.time_limit_s,
        env=spec.env,
        mounts=tuple(_mount(source, target) for source, target in spec.mounts.items()),
        profile=Profile(**attrs.asdict(spec.profile)) if spec.profile else None,
        settings=base.settings,
        options=options,
        paths=Paths(run="", cache=""),
        accelerator=accelerator,
    )
    published = recipe.find(run.gpu_type, run.dtype, run.gpus)
    changed = differences(run, recipe, published, spec)
    return attrs.evolve(run, baseline=published.baseline if published else None, differences=changed)


def _mount(source: str, target: str) -> Mount:
    path, _, mode = target.partition(":")
    return Mount(source=source, target=path, read_only=mode == "ro")


def _impossible(run: Run[Any], recipe: Recipe, spec: SpecTables) -> list[Fault]:
    faults = list(parallelism_faults(run.model, run.parallelism, run.gpus, gpus_per_node=run.gpus_per_node))
    memory = run.accelerator.memory_gb
    if recipe.memory_gb and memory and memory < recipe.memory_gb:
        faults.append(
            Fault(
                message=f"{run.gpu_type} has {memory:g} GB of memory",
                key="workload.gpu_type",
                expected=f"at least {recipe.memory_gb:g} GB for {recipe.address}",
            )
        )
    if run.window != "last" and not 0 <= run.window[0] <= run.window[1] <= run.steps:
        faults.append(
            Fault(
                message=f"is {list(run.window)} in a run of {run.steps} steps",
                key="measure.window",
                expected='"last", or the first and the last step of the mean',
            )
        )
    if (
        spec.profile is not None
        and not (spec.profile.start_step or 0) <= (spec.profile.stop_step or run.steps) <= run.steps
    ):
        faults.append(
            Fault(
                message="is not a range of the run's steps",
                key="profile",
                expected=f"start_step <= stop_step <= {run.steps}",
            )
        )
    return faults
