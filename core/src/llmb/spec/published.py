"""What a recipe publishes, against what a spec asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.spec.tables import ModelTable, ParallelismTable, SpecTables
from llmb.values.errors import Fault, RecipeError
from llmb.values.model import Model, Parallelism
from llmb.values.nearest import nearest_name
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Profile, Run

OR_YOUR_OWN = "or a [parallelism] of your own with its global_batch_size"


def published_points(
    recipe: Recipe, gpu_type: str, dtype: str, faults: list[Fault], *, own_parallelism: bool = False
) -> tuple[Point, ...]:
    """The points published for this GPU type and dtype; none, and a fault, where there is none.

    With a parallelism of its own a run may start from the points of another GPU type, the first that the recipe has
    with this dtype; it is not comparable with any baseline.
    """
    with_dtype = [point.gpu_type for point in recipe.points if point.dtype == dtype]
    if own_parallelism and gpu_type not in {point.gpu_type for point in recipe.points}:
        if not with_dtype:
            return _narrow(recipe.points, "dtype", dtype, recipe, faults)
        gpu_type = with_dtype[0]
    points = _narrow(recipe.points, "gpu_type", gpu_type, recipe, faults)
    if not points and not with_dtype:
        points = recipe.points  # the dtype is wrong whatever the GPU type
    return _narrow(points, "dtype", dtype, recipe, faults) if points else ()


def with_options(recipe: Recipe, points: tuple[Point, ...], options: Any) -> tuple[Point, ...]:
    """The recipe's variants for these points where the spec's [framework] asks for them, else the points."""
    if not points or not isinstance(options, Mapping):
        return points
    wanted = (points[0].gpu_type, points[0].dtype)
    chosen = (
        variant
        for variant in recipe.variants
        if (variant.gpu_type, variant.dtype) == wanted and variant.options.items() <= options.items()
    )
    return tuple(chosen) or points


def _narrow(points: tuple[Point, ...], key: str, wanted: str, recipe: Recipe, faults: list[Fault]) -> tuple[Point, ...]:
    known = list(dict.fromkeys(getattr(point, key) for point in points))
    chosen = tuple(point for point in points if getattr(point, key) == wanted)
    if not chosen:
        types = {point.gpu_type for point in points}
        on = f" on {points[0].gpu_type}" if key == "dtype" and len(types) == 1 else ""
        or_own = f", {OR_YOUR_OWN}" if key == "gpu_type" else ""
        faults.append(
            Fault(
                message=f'is "{wanted}", for which {recipe.address} is not published{on}',
                key=f"workload.{key}",
                expected=f"one of {', '.join(known)}{or_own}",
                nearest=nearest_name(wanted, known),
            )
        )
    return chosen


def choose_point(spec: SpecTables, recipe: Recipe, points: tuple[Point, ...], faults: list[Fault]) -> Point | None:
    """The published point that the run starts from, of those for its GPU type and dtype.

    A GPU count that is not published is refused, unless the spec sets the parallelism itself: then the nearest
    point below it is the start, and the run is not comparable with the baseline.
    """
    gpus = spec.workload.gpus
    if exact := [point for point in points if point.gpus == gpus]:
        return exact[0]
    if spec.parallelism.global_batch_size is not None:
        below = [point for point in points if point.gpus < gpus]
        return max(below, key=lambda point: point.gpus) if below else min(points, key=lambda point: point.gpus)
    faults.append(_gpus_fault(recipe, points, gpus))
    return None


def published_point(recipe: Recipe, gpu_type: str, dtype: str, gpus: int) -> Point:
    """The point published for this combination. Raises RecipeError with the part of it that is not, and what is."""
    faults: list[Fault] = []
    points = published_points(recipe, gpu_type, dtype, faults)
    if exact := [point for point in points if point.gpus == gpus]:
        return exact[0]
    raise RecipeError(*map(_of_arguments, faults or [_gpus_fault(recipe, points, gpus)]))


def _gpus_fault(recipe: Recipe, points: tuple[Point, ...], gpus: int) -> Fault:
    """That points of one GPU type and dtype are not published for this many GPUs."""
    return Fault(
        message=f"is {gpus}, which {recipe.address} does not publish on {points[0].gpu_type} {points[0].dtype}",
        key="workload.gpus",
        expected=f"one of {', '.join(str(point.gpus) for point in points)}, {OR_YOUR_OWN}",
    )


def _of_arguments(fault: Fault) -> Fault:
    """The same for one who has no spec, and so no [parallelism] either."""
    key, expected = (fault.key or "").removeprefix("workload."), (fault.expected or "").removesuffix(f", {OR_YOUR_OWN}")
    return attrs.evolve(fault, key=key, expected=expected)


def override_parallelism(published: Parallelism, table: ParallelismTable) -> Parallelism:
    """The published degrees with the spec's over them; vp = 1 means none."""
    changes: dict[str, Any] = _given(table)
    if changes.get("vp") == 1:
        changes["vp"] = None
    return attrs.evolve(published, **changes)


def override_model(published: Model, table: ModelTable) -> Model:
    """The published model with the spec's changes. FLOPs then use the spec's vocabulary where it states another."""
    changes: dict[str, Any] = _given(table)
    if changes.get("vocab", published.vocab) != published.vocab:
        changes["flops_vocab"] = None
    return attrs.evolve(published, **changes)


def _given(table: Any) -> dict[str, Any]:
    return {name: value for name, value in attrs.asdict(table).items() if value is not None}


def differences(run: Run[Any], recipe: Recipe, point: Point | None, spec: SpecTables) -> tuple[str, ...]:
    """The keys in which a run differs from what was published, so that it cannot be held against the baseline."""
    if point is None:
        published = any(run.gpu_type == each.gpu_type for each in recipe.points)
        return ("workload.gpus" if published else "workload.gpu_type",)
    changed = [f"parallelism.{name}" for name in _changed(run.parallelism, point.parallelism)]
    changed += [f"model.{name}" for name in _changed(run.model, point.model)]
    changed += ["workload.image"] if run.image != recipe.image else []
    changed += ["measure.window"] if run.window != recipe.window else []
    changed += [f"framework.{name}" for name in _not_default(run.options)]
    changed += ["workload.steps"] if _warms_up_less(run, recipe) else []
    changed += [f"env.{name}" for name in spec.env]
    changed += [f'mounts."{mount.source}"' for mount in run.mounts]
    changed += ["target.gpus_per_node"] if _other_nodes(run) else []
    return tuple(changed)


def published_steps(recipe: Recipe, profile: Profile | None) -> int:
    """How many steps are run, fewer or more where a capture is asked for."""
    return recipe.profile_steps.get(profile.tool, recipe.steps) if profile else recipe.steps


def _warms_up_less(run: Run[Any], recipe: Recipe) -> bool:
    """Whether the last step, where that one is measured, comes earlier than the publisher's; a later one is as warm."""
    return run.window == "last" and run.steps < published_steps(recipe, run.profile)


def _other_nodes(run: Run[Any]) -> bool:
    """Whether its nodes are of another size than those of its GPU type, which is what was published.

    A GPU type without a peak in the table (a CPU) is whatever machine is at hand.
    """
    usual = min(run.accelerator.gpus_per_node, run.gpus)  # a part of one node is allowed
    return bool(run.accelerator.peak_flops) and run.gpus_per_node != usual


def _changed(value: Any, published: Any) -> list[str]:
    fields = [field.name for field in attrs.fields(type(value))]
    return [name for name in fields if getattr(value, name) != getattr(published, name)]


def _not_default(options: Any) -> list[str]:
    """The options that are not what they are where a spec has no [framework]; one without a default always is not.

    An option with ``metadata={"comparable": True}`` does not count: it changes nothing of what is measured.
    """
    fields = [field for field in attrs.fields(type(options)) if not field.metadata.get("comparable")]
    return [field.name for field in fields if getattr(options, field.name) != _default(field, options)]


def _default(field: Any, options: Any) -> Any:
    default = field.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types the class as a function
        return default.factory(options) if default.takes_self else default.factory()
    return default
