"""Put a run together from a spec and its recipe."""

from __future__ import annotations

from typing import Any

import attrs

from llmb.hookspecs import SchedulerHooks
from llmb.paths import home_folder
from llmb.spec.check import place_faults
from llmb.spec.profile import with_published_steps
from llmb.spec.published import differences, override_model, override_parallelism, published_steps
from llmb.spec.tables import SpecTables, TargetTable
from llmb.values.errors import SpecError
from llmb.values.job import Image, Mount
from llmb.values.model import Accelerator
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Paths, Run, Target

TOLERANCE = 0.05  # how far above the baseline a step time may lie where the spec does not say


def assemble_target(
    table: TargetTable, scheduler: SchedulerHooks[Any], options: Any, gpu_types: tuple[str, ...] = ()
) -> Target[Any]:
    """The target, in this machine's own work directory where the spec names none.

    Raises SpecError where its scheduler names a machine that cannot be, or one without a work directory there.
    """
    target = Target(
        scheduler=table.scheduler,
        name=table.name,
        host=table.host,
        workdir=table.workdir or str(home_folder() / "work"),
        options=options,
        gpu_types=gpu_types,
    )
    host = scheduler.host(target=target)
    if faults := list(place_faults(attrs.evolve(table, host=host))):
        raise SpecError(*faults)
    return attrs.evolve(target, host=host)


def assemble_run(
    spec: SpecTables, recipe: Recipe, base: Point, accelerator: Accelerator, single_node: bool
) -> Run[Any]:
    """The run that is asked for, as yet without what the plugins' options and the published point say of it."""
    workload = spec.workload
    per_node = workload.gpus if single_node else spec.gpus_per_node or accelerator.gpus_per_node
    model = override_model(base.model, spec.model)
    return Run(
        id="",
        name=f"{workload.recipe.partition('/')[2]}-{workload.gpu_type}-{workload.dtype}-{workload.gpus}".lower(),
        recipe=recipe.address,
        release=recipe.release,
        gpu_type=workload.gpu_type,
        dtype=workload.dtype,
        gpus=workload.gpus,
        gpus_per_node=min(per_node, workload.gpus),  # a part of one node is allowed
        steps=workload.steps or published_steps(recipe, spec.profile),
        model=model,
        published_model=recipe.model,
        parallelism=override_parallelism(base.parallelism, spec.parallelism),
        flop_formula=recipe.flop_formula,
        mfu_from=recipe.mfu_from,
        window=spec.measure.window or recipe.window,
        tolerance=spec.measure.tolerance or TOLERANCE,
        proxy=base.proxy or model != base.model,
        recompute_layers=base.recompute_layers,
        offload_layers=base.offload_layers,
        cuda_graphs=base.cuda_graphs,
        image=_image(workload.image, recipe.image),
        time_limit_s=workload.time_limit or recipe.time_limit_s,
        env=spec.env,
        mounts=tuple(_mount(source, target) for source, target in spec.mounts.items()),
        profile=with_published_steps(spec.profile, recipe),
        settings=base.settings,
        options=None,
        paths=Paths(run="", cache=""),
        accelerator=accelerator,
    )


def _image(wanted: str | None, of_recipe: Image | None) -> Image | None:
    """The spec's image; the recipe's own has its digest also where the spec names it."""
    if wanted is None or (of_recipe is not None and wanted in (of_recipe.ref, of_recipe.with_digest)):
        return of_recipe
    return Image(ref=wanted)


def against_published(run: Run[Any], recipe: Recipe, spec: SpecTables) -> Run[Any]:
    """The run with the baseline of the point that it is, and with all in which it differs from that."""
    published = recipe.find(run.gpu_type, run.dtype, run.gpus)
    changed = differences(run, recipe, published, spec)
    return attrs.evolve(run, baseline=published.baseline if published else None, differences=changed)


def _mount(source: str, target: str) -> Mount:
    path, _, mode = target.partition(":")
    return Mount(source=source, target=path, read_only=mode == "ro")
