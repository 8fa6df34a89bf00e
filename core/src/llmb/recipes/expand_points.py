"""Expand the [[points]] of a recipe: each table is every combination of its gpu_type, dtype and gpus."""

import itertools
from collections.abc import Mapping
from typing import Any

import attrs

from llmb.analysis.flops import flops_per_sequence
from llmb.recipes.accelerators import accelerators
from llmb.recipes.baselines import PointKey, PublishedRow, point_name
from llmb.recipes.recipe_tables import PointTable, RecipeTable
from llmb.recipes.scaling_rules import scaled
from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, merged
from llmb.values.model import Model, Parallelism
from llmb.values.parallelism_rules import check_model, check_parallelism
from llmb.values.recipe import Point, ScalingRule
from llmb.values.typed import decode_fields

DEGREES = tuple(field.name for field in attrs.fields(Parallelism))
"""The keys of a table of points that may be rules."""


def expand_points(recipe: RecipeTable, rows: Mapping[PointKey, PublishedRow]) -> tuple[tuple[Point, ...], list[Fault]]:
    """Return every combination of every table, and the errors of the others. ``rows`` are the published values."""
    points: dict[PointKey, tuple[str, Point]] = {}
    errors: list[Fault] = []
    for index, table in enumerate(recipe.points):
        key = f"points[{index}]"
        expanded, wrong = _expand(table, recipe, key)
        errors += wrong
        for point in expanded:
            name = point_key(point)
            if name in points:
                message = f"{point_name(name)} is already in {points[name][0]}"
                errors.append(Fault(message=message, key=key))
            points.setdefault(name, (key, _with_baseline(point, recipe, rows)))
    return tuple(point for _, point in points.values()), errors


def point_key(point: Point) -> PointKey:
    """Return the gpu_type, dtype, variant and gpus of a point."""
    return point.gpu_type, point.dtype, point.variant, point.gpus


def _expand(table: PointTable, recipe: RecipeTable, key: str) -> tuple[list[Point], list[Fault]]:
    model, errors = _model(table, recipe.model, key)
    if model is None:
        return [], errors
    points: list[Point] = []
    for gpu_type, gpus in itertools.product(table.gpu_type, table.gpus):
        parallelism, wrong = _parallelism(table, model, gpus, _gpus_per_node(gpu_type), key)
        errors += wrong
        if parallelism is None:
            continue
        points += [
            Point(
                gpu_type=gpu_type,
                dtype=dtype,
                gpus=gpus,
                variant=_variant(table),
                model=model,
                parallelism=parallelism,
                proxy=table.proxy,
                recompute_layers=table.recompute_layers,
                offload_layers=table.offload_layers,
                cuda_graphs=table.cuda_graphs,
                settings=_settings(table, recipe, gpu_type, dtype),
                options=table.options,
                rule=_rule(table),
            )
            for dtype in table.dtype
        ]
    return points, list(dict.fromkeys(errors))


def _gpus_per_node(gpu_type: str) -> int:
    """Return the GPUs of a node, 8 for a type that only an extension knows."""
    known = accelerators().get(gpu_type)
    return known.gpus_per_node if known else 8


def _variant(table: PointTable) -> str | None:
    """Return the variant of a table, by default the options of [framework] that select it."""
    return table.variant or " ".join(f"{name}={value}" for name, value in table.options.items()) or None


def _rule(table: PointTable) -> ScalingRule | None:
    if table.other_gpus is None:
        return None
    degrees = FrozenMap((name, getattr(table, name)) for name in DEGREES)
    return ScalingRule(condition=table.other_gpus, degrees=degrees)


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


def _parallelism(
    table: PointTable, model: Model, gpus: int, gpus_per_node: int, key: str
) -> tuple[Parallelism | None, list[Fault]]:
    """Return the degrees at this number of GPUs; None, with the errors, if the division is impossible."""
    degrees: dict[str, Any] = {}
    errors = []
    on_gpus = f"on {counted(gpus, 'GPU')}"
    for name in DEGREES:
        rule = getattr(table, name)
        try:
            degrees[name] = scaled(rule, gpus, gpus_per_node)
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


def _with_baseline(point: Point, recipe: RecipeTable, rows: Mapping[PointKey, PublishedRow]) -> Point:
    row = rows.get(point_key(point))
    if row is None:
        return point
    batch = point.parallelism.global_batch_size
    flops_per_step = batch * flops_per_sequence(point.model, recipe.flop_formula)
    return attrs.evolve(point, baseline=row.as_baseline(point.gpus, batch * point.model.seq_len, flops_per_step))
