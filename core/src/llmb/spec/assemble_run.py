"""Assemble a run and its target from the valid values of a spec and the recipe's published point."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.analysis.flops import head_size
from llmb.analysis.verdict import TOLERANCE
from llmb.hookspecs import SchedulerHooks
from llmb.paths import home_folder
from llmb.spec.check_values import check_host_and_workdir
from llmb.spec.choose_published_point import published_degree
from llmb.spec.published_baseline import published_steps
from llmb.spec.spec_tables import flat
from llmb.spec.workload_tables import SpecTables, TargetTable, WorkloadTable
from llmb.values.environment import Image
from llmb.values.errors import Fault, SpecError
from llmb.values.job import Mount
from llmb.values.model import Accelerator, Model, Parallelism
from llmb.values.profile_and_telemetry import Profile
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Paths, Run, Target
from llmb.values.texts.error_text import REQUIRED_KEY, invalid_value
from llmb.values.types.words_and_addresses import is_path


def assemble_target(
    table: TargetTable, scheduler: SchedulerHooks[Any], options: Any, gpu_types: tuple[str, ...] = ()
) -> Target[Any]:
    """Return the target; without a work directory in the spec, the one of this machine.

    Raise SpecError if the scheduler's host is invalid, or needs a work directory that the spec lacks.
    """
    if errors := [error for error in check_host_and_workdir(table) if error.message != REQUIRED_KEY]:
        raise SpecError(*errors)
    workdir = table.workdir or str(home_folder() / "work")
    if not is_path(workdir):
        message = f"{invalid_value(workdir)}, which follows from LLMB_HOME"
        expected = "a path without line breaks or other invisible characters"
        raise SpecError(Fault(message=message, key="target.workdir", expected=expected))
    target = Target(
        scheduler=table.scheduler,
        name=table.name,
        host=table.host,
        workdir=workdir,
        shared=table.shared,
        max_jobs=table.max_jobs,
        options=options,
        gpu_types=gpu_types,
        env=table.env,
        mounts=_mounts(table.mounts),
        secrets=table.secrets,
    )
    host = scheduler.host(target=target)
    if errors := list(check_host_and_workdir(attrs.evolve(table, host=host))):
        raise SpecError(*errors)
    return target if host == target.host else attrs.evolve(target, host=host)


def assemble_run(
    spec: SpecTables,
    recipe: Recipe,
    point: Point,
    accelerator: Accelerator,
    *,
    gpus_per_node: int,
    options: Any,
    cache: str,
) -> Run[Any]:
    """Return the run of a spec over a published point, without an id and without a baseline."""
    workload = spec.workload
    model = override_model(point.model, spec.model)
    return Run(
        id="",
        name=_name(recipe, point, model, workload),
        recipe=recipe.address,
        framework=recipe.framework,
        release=recipe.release,
        gpu_type=workload.gpu_type,
        dtype=workload.dtype,
        gpus=workload.gpus,
        variant=point.variant,
        gpus_per_node=gpus_per_node,
        steps=workload.steps or published_steps(recipe, spec.profile),
        architecture=model,
        published_architecture=recipe.published_model(point),
        seq_len=spec.model.get("seq_len", point.seq_len),
        parallelism=_override_parallelism(point, model, spec.parallelism),
        flop_formula=recipe.flop_formula,
        flops_per_token=recipe.flops_per_token,
        mfu_from=recipe.mfu_from,
        window=spec.measure.window or recipe.window,
        tolerance=spec.measure.tolerance or TOLERANCE,
        proxy=point.proxy or model != point.model,
        recompute_layers=point.recompute_layers,
        offload_layers=point.offload_layers,
        cuda_graphs=point.cuda_graphs,
        image=_image(workload.image, recipe.image),
        time_limit_s=workload.time_limit or point.time_limit_s or recipe.time_limit_s,
        env=spec.env,
        mounts=_mounts(spec.mounts),
        profile=with_published_capture(spec.profile, recipe),
        telemetry=spec.telemetry,
        settings=point.settings,
        options=options,
        paths=Paths(run="", cache=cache),
        accelerator=accelerator,
        overrides=_overridden_keys(spec, recipe, point, gpus_per_node),
    )


def _name(recipe: Recipe, point: Point, model: Model | None, workload: WorkloadTable) -> str:
    """Return the name of a run, which every view shows. It marks a proxy: a model that differs from the recipe's."""
    words = (
        recipe.address.partition("/")[2],
        "proxy" if model != recipe.published_model(point) else None,
        workload.gpu_type,
        workload.dtype,
        point.variant,
        str(workload.gpus),
    )
    return "-".join(word for word in words if word).lower()


def with_published_capture(profile: Profile | None, recipe: Recipe) -> Profile | None:
    """Return the profile with the steps that the recipe's publisher captures, unless the spec states steps."""
    if profile is None or profile.tool not in recipe.captured_steps:
        return profile
    start, stop = recipe.captured_steps[profile.tool]
    return attrs.evolve(
        profile,
        start_step=start if profile.start_step is None else profile.start_step,
        stop_step=stop if profile.stop_step is None else profile.stop_step,
    )


def _override_parallelism(point: Point, model: Model | None, stated: Mapping[str, Any]) -> Parallelism:
    """Return the published degrees with the values of the spec. A layout for another number of layers is dropped."""
    parallelism = point.parallelism.with_degrees(stated) if stated else point.parallelism
    if model and point.model and model.layers != point.model.layers and "pipeline_layout" not in stated:
        return attrs.evolve(parallelism, pipeline_layout=None)
    return parallelism


def override_model(published: Model | None, stated: Mapping[str, Any]) -> Model | None:
    """Return the published model with the values of the spec. FLOPs use the spec's vocabulary if it is another one."""
    if published is None or not stated:
        return published
    changes = dict(stated)
    if changes.get("vocab", published.vocab) != published.vocab:
        changes["flops_vocab"] = None
    for name, value in stated.items():
        if isinstance(value, dict):  # the sizes of a part
            part = getattr(published, name)
            changes[name] = attrs.evolve(part, **value) if part else None
    model = attrs.evolve(published, **changes)
    if published.head_size is None and model.head_size and model.head_size * model.heads == model.hidden:
        return attrs.evolve(model, head_size=None)  # a spec may state the size that a model has by default
    return model


def _overridden_keys(spec: SpecTables, recipe: Recipe, point: Point, gpus_per_node: int) -> tuple[str, ...]:
    """Return the keys of the spec with another value than the recipe has at this point."""
    found: list[tuple[str, Any, Any]] = []  # each key with the value of the spec, and that of the recipe
    found.append(("workload.steps", spec.workload.steps, published_steps(recipe, spec.profile)))
    for name, value in spec.parallelism.items():
        found.append((f"parallelism.{name}", value, published_degree(point, name, gpus_per_node)))
    for name, value in flat(spec.model):
        part, _, key = name.rpartition(".")
        source = getattr(point.model, part, None) if part else point.model
        published = point.seq_len if name == "seq_len" else getattr(source, key, None)
        if name == "head_size" and point.model:
            published = head_size(point.model)
        found.append((f"model.{name}", value, published))
    return tuple(key for key, value, published in found if value not in (None, published))


def _image(wanted: str | None, published: Image | None) -> Image | None:
    """Return the spec's image. The recipe's own image keeps its digest if the spec names it."""
    if wanted is None or (published is not None and wanted in (published.ref, published.with_digest)):
        return published
    return Image(ref=wanted)


def _mounts(table: Mapping[str, str]) -> tuple[Mount, ...]:
    """Return the mounts of a table ``{"/outside": "/inside"}`` or ``{"/outside": "/inside:ro"}``."""
    pairs = ((source, *target.partition(":")[::2]) for source, target in table.items())
    return tuple(Mount(source=source, target=path, read_only=mode == "ro") for source, path, mode in pairs)
