"""Expand the [[points]] of a recipe: each table is every combination of its gpu_type, dtype and gpus."""

import itertools
from collections.abc import Mapping
from typing import Any

import attrs

from llmb.recipes.baselines import PointKey, PublishedRow, point_name
from llmb.recipes.recipe_tables import PointTable, RecipeTable
from llmb.recipes.scaling_rules import scaled
from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.frozen import merged
from llmb.values.model import Model, Parallelism
from llmb.values.parallelism_rules import check_model, check_parallelism
from llmb.values.recipe import Point
from llmb.values.typed import decode_fields

_DEGREES = tuple(field.name for field in attrs.fields(Parallelism))


def expand_points(recipe: RecipeTable, rows: Mapping[PointKey, PublishedRow]) -> tuple[tuple[Point, ...], list[Fault]]:
    """Return every combination of every table, and the errors of the others. ``rows`` are the published values."""
    points: dict[tuple[PointKey, Mapping[str, Any]], tuple[str, Point]] = {}
    errors: list[Fault] = []
    for index, table in enumerate(recipe.points):
        key = f"points[{index}]"
        expanded, wrong = _expand(table, recipe, key)
        errors += wrong
        for point in expanded:
            name = (point_key(point), point.options)
            if name in points:
                message = f"{point_name(point_key(point))} is already in {points[name][0]}"
                errors.append(Fault(message=message, key=key))
            points.setdefault(name, (key, _with_baseline(point, rows)))
    return tuple(point for _, point in points.values()), errors


def point_key(point: Point) -> PointKey:
    """Return the gpu_type, dtype and gpus of a point."""
    return point.gpu_type, point.dtype, point.gpus


def _expand(table: PointTable, recipe: RecipeTable, key: str) -> tuple[list[Point], list[Fault]]:
    model, errors = _model(table, recipe.model, key)
    if model is None:
        return [], errors
    divided: dict[int, Parallelism] = {}
    for gpus in table.gpus:
        parallelism, wrong = _parallelism(table, model, gpus, key)
        errors += wrong
        if parallelism is not None:
            divided[gpus] = parallelism
    points = [
        Point(
            gpu_type=gpu_type,
            dtype=dtype,
            gpus=gpus,
            model=model,
            parallelism=parallelism,
            proxy=table.proxy,
            recompute_layers=table.recompute_layers,
            offload_layers=table.offload_layers,
            cuda_graphs=table.cuda_graphs,
            settings=_settings(table, recipe, gpu_type, dtype),
            options=table.options,
        )
        for gpu_type, dtype in itertools.product(table.gpu_type, table.dtype)
        for gpus, parallelism in divided.items()
    ]
    return points, errors


def _settings(table: PointTable, recipe: RecipeTable, gpu_type: str, dtype: str) -> Mapping[str, Any]:
    """Return the settings of a point: those of the recipe, of [[settings]] and of the point, each over the others."""
    settings: Mapping[str, Any] = recipe.framework
    for each in recipe.settings:
        if each.applies(gpu_type, dtype):
            settings = merged(settings, each.framework)
    return merged(settings, table.framework)


def _model(table: PointTable, model: Model, key: str) -> tuple[Model | None, list[Fault]]:
    """Return the recipe's model with the changes of a table; None if a change is invalid."""
    changes, errors = decode_fields(table.model, Model, f"{key}.model", required=False)
    if errors or not changes:
        return (None if errors else model), list(errors)
    changed = attrs.evolve(model, **changes)
    return changed, [attrs.evolve(error, key=_key_in_point(error, key)) for error in check_model(changed)]


def _parallelism(table: PointTable, model: Model, gpus: int, key: str) -> tuple[Parallelism | None, list[Fault]]:
    """Return the degrees at this number of GPUs; None, with the errors, if the division is impossible."""
    degrees: dict[str, Any] = {}
    errors = []
    on_gpus = f"on {counted(gpus, 'GPU')}"
    for name in _DEGREES:
        rule = getattr(table, name)
        try:
            degrees[name] = scaled(rule, gpus)
        except ValueError as error:
            message = f'"{rule}" is {error} {on_gpus}'
            errors.append(Fault(message=message, key=f"{key}.{name}", expected="a positive integer"))
    if errors:
        return None, errors
    parallelism = Parallelism(**degrees | {"vp": None if degrees["vp"] == 1 else degrees["vp"]})
    for each in check_parallelism(model, parallelism, gpus):
        message = each.message if counted(gpus, "GPU") in each.message else f"{each.message} ({on_gpus})"
        errors.append(attrs.evolve(each, message=message, key=_key_in_point(each, key)))
    return (None if errors else parallelism), errors


def _key_in_point(error: Fault, key: str) -> str:
    """Return the key of a spec (``parallelism.tp``) as it is written in a point (``points[0].tp``)."""
    table, _, name = (error.key or "").partition(".")
    return f"{key}.model.{name}" if table == "model" else f"{key}.{name}"


def _with_baseline(point: Point, rows: Mapping[PointKey, PublishedRow]) -> Point:
    row = rows.get(point_key(point))
    if point.options or row is None:
        return point
    tokens_per_step = point.parallelism.global_batch_size * point.model.seq_len
    return attrs.evolve(point, baseline=row.as_baseline(point.gpus, tokens_per_step))
