"""Choose the published point of a recipe that a run starts from."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb.spec.keys import SpecTables
from llmb.values.error_text import counted, format_choices, nearest_name
from llmb.values.errors import Fault, RecipeError
from llmb.values.recipe import Point, Recipe

SET_BATCH = ", or set parallelism.global_batch_size"
"""The advice for GPUs without a published point: a run with its own batch size needs none."""


def published_points(
    recipe: Recipe, gpu_type: str, dtype: str, errors: list[Fault], *, own_parallelism: bool = False
) -> tuple[Point, ...]:
    """Return the points published for this GPU type and dtype; without any, append the error.

    With ``own_parallelism``, a run may start from the points of another GPU type: the first that the recipe has with
    this dtype. Such a run is not comparable with a baseline.
    """
    with_dtype = [point.gpu_type for point in recipe.points if point.dtype == dtype]
    if own_parallelism and gpu_type not in {point.gpu_type for point in recipe.points}:
        if not with_dtype:
            return _narrow(recipe.points, "dtype", dtype, recipe, errors)
        gpu_type = with_dtype[0]
    points = _narrow(recipe.points, "gpu_type", gpu_type, recipe, errors)
    if not points and not with_dtype:
        points = recipe.points  # the dtype is invalid for every GPU type
    return _narrow(points, "dtype", dtype, recipe, errors) if points else ()


def select_variants(recipe: Recipe, points: tuple[Point, ...], options: Any) -> tuple[Point, ...]:
    """Return the recipe's variants for these points if the spec's [framework] selects them, else the points."""
    if not points or not isinstance(options, Mapping):
        return points
    wanted = (points[0].gpu_type, points[0].dtype)
    chosen = (
        variant
        for variant in recipe.variants
        if (variant.gpu_type, variant.dtype) == wanted and variant.options.items() <= options.items()
    )
    return tuple(chosen) or points


def choose_point(spec: SpecTables, recipe: Recipe, points: tuple[Point, ...], errors: list[Fault]) -> Point | None:
    """Return the published point for this number of GPUs, of the points for its GPU type and dtype.

    A number that is not published is an error, unless the spec sets the global batch size: then the run starts from the
    nearest point below, and is not comparable with the baseline.
    """
    gpus = spec.workload.gpus
    if exact := [point for point in points if point.gpus == gpus]:
        return exact[0]
    if spec.parallelism.global_batch_size is not None:
        below = [point for point in points if point.gpus < gpus]
        return max(below, key=lambda point: point.gpus) if below else min(points, key=lambda point: point.gpus)
    errors.append(_gpus_error(recipe, points, gpus))
    return None


def published_point(recipe: Recipe, gpu_type: str, dtype: str, gpus: int) -> Point:
    """Return the point published for this combination. Raise RecipeError with the part that is not published."""
    errors: list[Fault] = []
    points = published_points(recipe, gpu_type, dtype, errors)
    if exact := [point for point in points if point.gpus == gpus]:
        return exact[0]
    raise RecipeError(*map(_of_arguments, errors or [_gpus_error(recipe, points, gpus)]))


def _narrow(points: tuple[Point, ...], key: str, wanted: str, recipe: Recipe, errors: list[Fault]) -> tuple[Point, ...]:
    known = list(dict.fromkeys(getattr(point, key) for point in points))
    chosen = tuple(point for point in points if getattr(point, key) == wanted)
    if not chosen:
        types = {point.gpu_type for point in points}
        on = f" on {points[0].gpu_type}" if key == "dtype" and len(types) == 1 else ""
        advice = SET_BATCH if key == "gpu_type" else ""
        errors.append(
            Fault(
                message=f"{recipe.address} has no configuration for {wanted}{on}",
                key=f"workload.{key}",
                expected=format_choices(known) + advice,
                nearest=nearest_name(wanted, known),
            )
        )
    return chosen


def _gpus_error(recipe: Recipe, points: tuple[Point, ...], gpus: int) -> Fault:
    on = f"{points[0].gpu_type}, {points[0].dtype}"
    return Fault(
        message=f"{recipe.address} has no configuration for {counted(gpus, 'GPU')} ({on})",
        key="workload.gpus",
        expected=format_choices(point.gpus for point in points) + SET_BATCH,
    )


def _of_arguments(error: Fault) -> Fault:
    """Return the error for a caller without a spec: with the argument's name, and no advice about [parallelism]."""
    key, expected = (error.key or "").removeprefix("workload."), (error.expected or "").removesuffix(SET_BATCH)
    return attrs.evolve(error, key=key, expected=expected)
