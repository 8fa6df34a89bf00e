"""Choose the published point of a recipe that a run starts from."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs

from llmb.recipes.accelerators import accelerators
from llmb.recipes.scaling_rules import evaluate_condition, evaluate_rule
from llmb.spec.gpu_and_dtype import SET_BATCH, check_published
from llmb.spec.workload_tables import SpecTables
from llmb.values.copy_with_changes import with_changes
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap
from llmb.values.model import Parallelism
from llmb.values.recipe import Point, Recipe
from llmb.values.texts.error_text import counted, format_choices, format_name
from llmb.values.texts.nearest_name import nearest_name
from llmb.values.types.numbers import LARGEST

NO_VARIANT = "no such key"
"""What a spec may contain for a recipe without variants."""


def published_points(recipe: Recipe, gpu_type: str, dtype: str) -> tuple[Point, ...]:
    """Return the points published for this GPU type and dtype, which `check_published` found to fit the recipe.

    For a GPU type that the recipe does not have, return the points of the first GPU type that it has with this dtype.
    A run that starts from one of them is not comparable with a baseline.
    """
    if recipe.rule:
        return (_open_point(recipe, gpu_type, dtype),)
    if gpu_type not in {point.gpu_type for point in recipe.points}:
        gpu_type = next(point.gpu_type for point in recipe.points if point.dtype == dtype)
    return tuple(point for point in recipe.points if (point.gpu_type, point.dtype) == (gpu_type, dtype))


def _open_point(recipe: Recipe, gpu_type: str, dtype: str) -> Point:
    """Return the configuration of a recipe without [[points]]. `choose_point` computes its GPUs and its parallelism."""
    return Point(
        gpu_type=gpu_type,
        dtype=dtype,
        gpus=1,
        model=recipe.model,
        seq_len=recipe.seq_len,
        parallelism=Parallelism(global_batch_size=1),
        settings=recipe.settings,
        rule=recipe.rule,
    )


def example_points(recipe: Recipe) -> tuple[Point, ...]:
    """Return the published configurations; without any, one GPU of a known type for each dtype of the recipe."""
    known = accelerators()
    types = {dtype: next((name for name, each in known.items() if dtype in each.dtypes), "") for dtype in recipe.dtypes}
    return recipe.points or tuple(_open_point(recipe, types[dtype], dtype) for dtype in recipe.dtypes)


def select_variant(
    recipe: Recipe, points: tuple[Point, ...], variant: str | None, options: Any, errors: list[Fault]
) -> tuple[Point, ...]:
    """Return the points of the variant that [workload] names, and of these the ones that [framework] selects.

    A variant may be named by one of its parts: "v1" selects "cs-v1" and "mxfp8-v1". Of all points, the first of a
    number of GPUs is the publisher's default.
    """
    chosen = points if variant is None else _of_variant(points, variant)
    if points and not chosen:
        known = [each.variant for each in points if each.variant]
        name = format_name(variant or "")
        message = f"{recipe.address} has no variant {name} for {points[0].gpu_type}, {points[0].dtype}"
        expected = format_choices(dict.fromkeys(known)) if known else NO_VARIANT
        nearest = nearest_name(variant or "", known)
        errors.append(Fault(message=message, key="workload.variant", expected=expected, nearest=nearest))
    table = options if isinstance(options, Mapping) else {}
    return tuple(each for each in chosen if each.options and each.options.items() <= table.items()) or chosen


def _of_variant(points: tuple[Point, ...], variant: str) -> tuple[Point, ...]:
    """Return the points whose variant has this name. If there is no such point, return those with such a part."""
    named = tuple(each for each in points if each.variant == variant)
    return named or tuple(each for each in points if variant in (each.variant or "").split("-"))


def choose_point(
    spec: SpecTables, recipe: Recipe, points: tuple[Point, ...], gpus_per_node: int, errors: list[Fault]
) -> Point | None:
    """Return the configuration for this number of GPUs, of the points for its GPU type, dtype and variant.

    An unpublished number, and a published number on nodes of another size, use the publisher's rule. Without a rule,
    an unpublished number is an error, unless the spec sets the global batch size: then the run starts from the nearest
    point below, and is not comparable with the baseline. A proxy is for its published number of GPUs only: the run has
    the recipe's model, unless the spec sets model.layers.
    """
    gpus = spec.workload.gpus
    if recipe.rule:
        return _apply_rule(points[0], gpus, gpus_per_node, errors, spec.parallelism)
    exact = next((point for point in points if point.gpus == gpus), None)
    if exact and (exact.rule is None or gpus_per_node == _usual_gpus_per_node(exact.gpu_type, gpus)):
        return exact
    for point in points:
        if point.rule and evaluate_condition(point.rule.condition, gpus, gpus_per_node):
            return _apply_rule(point, gpus, gpus_per_node, errors, spec.parallelism)
    if exact:
        return exact
    usable = [each for each in points if each.model == recipe.published_model(each) or "layers" in spec.model]
    if "global_batch_size" in spec.parallelism and usable:
        below = [point for point in usable if point.gpus < gpus]
        return max(below, key=lambda point: point.gpus) if below else min(usable, key=lambda point: point.gpus)
    errors.append(_gpus_error(recipe, points, gpus))
    return None


def _apply_rule(
    point: Point, gpus: int, gpus_per_node: int, errors: list[Fault], stated: Mapping[str, Any] = FrozenMap()
) -> Point | None:
    """Return the configuration that the rule of a point computes; None, with the errors, for a fraction.

    Degrees in ``stated``, the spec's [parallelism], are not computed.
    """
    degrees = dict[str, Any]()
    wrong: list[Fault] = []
    assert point.rule
    for name, text in point.rule.degrees.items():
        try:
            degrees[name] = stated.get(name) or evaluate_rule(text, gpus, gpus_per_node)
        except ValueError as error:
            message = f"the publisher's rule {text} is {error} for {counted(gpus, 'GPU')}"
            expected = f"another number of GPUs, or set parallelism.{name}"
            wrong.append(Fault(message=message, key="workload.gpus", expected=expected))
    errors += wrong
    if wrong:
        return None
    return with_changes(point, gpus=gpus, parallelism=point.parallelism.with_degrees(degrees), baseline=None)


def published_degree(point: Point, name: str, gpus_per_node: int) -> int | str | None:
    """Return a degree as the recipe has it at this point, whatever the spec states, or None if its rule gives none."""
    if point.rule is None or name not in point.rule.degrees:
        return getattr(point.parallelism, name) or 1
    with suppress(ValueError):
        return evaluate_rule(point.rule.degrees[name], point.gpus, gpus_per_node)
    return None


def _usual_gpus_per_node(gpu_type: str, gpus: int) -> int:
    """Return the GPUs of this run on a node of the usual size, for which points are published."""
    known = accelerators().get(gpu_type)
    return min(known.gpus_per_node, gpus) if known else gpus


def published_point(recipe: Recipe, gpu_type: str, dtype: str, gpus: int, variant: str | None) -> Point:
    """Return the point published for this combination. Raise RecipeError with the part that is not published.

    A recipe without [[points]] has one for any number of GPUs.
    """
    check_gpus(gpus)
    errors = [*check_published(recipe, gpu_type, dtype)]
    points = () if errors else published_points(recipe, gpu_type, dtype)
    points = select_variant(recipe, points, variant, None, errors)
    exact = next((point for point in points if point.gpus == gpus), None)
    if recipe.rule and points:
        gpus_per_node = _usual_gpus_per_node(gpu_type, gpus)
        stated = recipe.find(gpu_type, dtype, gpus, variant=variant)
        exact = stated or _apply_rule(points[0], gpus, gpus_per_node, errors)
    if exact:
        return exact
    raise RecipeError(*map(reword_for_arguments, errors or [_gpus_error(recipe, points, gpus)]))


def _gpus_error(recipe: Recipe, points: tuple[Point, ...], gpus: int) -> Fault:
    on = f"{points[0].gpu_type}, {points[0].dtype}"
    return Fault(
        message=f"{recipe.address} has no configuration for {counted(gpus, 'GPU')} ({on})",
        key="workload.gpus",
        expected=format_choices(sorted({point.gpus for point in points})) + SET_BATCH,
    )


def check_gpus(gpus: int) -> None:
    """Raise RecipeError if no run can have this number of GPUs."""
    if not 1 <= gpus <= LARGEST:
        expected = f"an integer from 1 to {LARGEST}"
        raise RecipeError(Fault(message=f"invalid value {gpus}", key="gpus", expected=expected))


def reword_for_arguments(error: Fault) -> Fault:
    """Return the error for a caller without a spec: with the argument's name, and no advice about the spec."""
    key, expected = (error.key or "").removeprefix("workload."), (error.expected or "").removesuffix(SET_BATCH)
    return attrs.evolve(error, key=key, expected="none" if expected == NO_VARIANT else expected)
