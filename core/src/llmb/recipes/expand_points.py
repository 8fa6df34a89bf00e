"""Expand the [[points]] of a recipe: each table is every combination of its gpu_type, dtype and gpus."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from llmb.analysis.flops import sequence_flops
from llmb.recipes.accelerators import accelerators
from llmb.recipes.baselines import PointKey, PublishedRow, check_baseline, point_name
from llmb.recipes.recipe_tables import PointTable, RecipeTable
from llmb.recipes.scaling_rules import evaluate_rule
from llmb.recipes.sizes import DEGREES, check_dtypes, flops_per_token, scaling_rule, sequence_length
from llmb.values.errors import Fault
from llmb.values.merge_tables import merge_tables
from llmb.values.model import FlopFormula, Model, Parallelism
from llmb.values.recipe import Point
from llmb.values.rules.model_rules import check_model, check_model_keys
from llmb.values.rules.parallelism_rules import check_parallelism
from llmb.values.texts.error_text import counted
from llmb.values.types.check_types import decode_fields


def expand_points(
    recipe: RecipeTable, rows: Mapping[PointKey, Sequence[PublishedRow]]
) -> tuple[tuple[Point, ...], list[Fault]]:
    """Return every combination of every table, and the errors of the others. ``rows`` are the published values."""
    points: dict[PointKey, tuple[str, Point]] = {}
    errors: list[Fault] = []
    tables = {f"points[{index}]": table for index, table in enumerate(recipe.points)}
    for key, table in (tables or _measured(recipe, rows)).items():
        expanded, wrong = _expand(table, recipe, key)
        errors += wrong
        for point in expanded:
            name = point_key(point)
            if name in points:
                message = f"{point_name(name)} is already in {points[name][0]}"
                errors.append(Fault(message=message, key=key))
            measured, wrong = _with_baselines(point, recipe, rows.get(name, ()))
            errors += wrong
            points.setdefault(name, (key, measured))
        errors += check_dtypes(table.dtype, f"{key}.dtype") if {*table.gpu_type} & {*accelerators()} else ()
    errors += _check_conditions(tables)
    return tuple(point for _, point in points.values()), errors


def _check_conditions(tables: Mapping[str, PointTable]) -> Iterator[Fault]:
    """Yield an error for each table whose rules would hold for the numbers of GPUs of an earlier one."""
    found: dict[tuple[str, str, str | None, str | None], str] = {}
    for key, table in tables.items():
        for gpu_type, dtype in itertools.product(table.gpu_type, table.dtype) if table.other_gpus else ():
            names = (gpu_type, dtype, _variant(table))
            first = found.setdefault((*names, table.other_gpus), key)
            if first != key:
                name = " ".join(filter(None, names))
                message = f'{name} with other_gpus = "{table.other_gpus}" is already in {first}'
                yield Fault(message=message, key=f"{key}.other_gpus", expected="one table for each number of GPUs")


def _measured(recipe: RecipeTable, rows: Mapping[PointKey, Sequence[PublishedRow]]) -> Mapping[str, PointTable]:
    """Return a table for each baseline of a recipe without [[points]], by a key for errors."""
    degrees = {name: getattr(recipe, name) for name in DEGREES}
    return {
        f"{row[0].place} ({point_name((gpu_type, dtype, variant, gpus))})": PointTable(
            gpu_type=(gpu_type,), dtype=(dtype,), variant=variant, gpus=(gpus,), **degrees
        )
        for (gpu_type, dtype, variant, gpus), row in rows.items()
    }


def point_key(point: Point) -> PointKey:
    """Return the gpu_type, dtype, variant and gpus of a point."""
    return point.gpu_type, point.dtype, point.variant, point.gpus


def _expand(table: PointTable, recipe: RecipeTable, key: str) -> tuple[list[Point], list[Fault]]:
    model, seq_len, errors = _model(table, recipe, key)
    if errors:
        return [], errors
    points: list[Point] = []
    rule = scaling_rule(table, table.other_gpus) if table.other_gpus else None
    names = itertools.product(table.gpu_type, table.dtype)
    settings = {(gpu_type, dtype): _settings(table, recipe, gpu_type, dtype) for gpu_type, dtype in names}
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
                seq_len=seq_len,
                parallelism=parallelism,
                proxy=table.proxy,
                recompute_layers=table.recompute_layers,
                offload_layers=table.offload_layers,
                cuda_graphs=table.cuda_graphs,
                time_limit_s=table.time_limit,
                settings=settings[gpu_type, dtype],
                options=table.options,
                rule=rule,
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


def _settings(table: PointTable, recipe: RecipeTable, gpu_type: str, dtype: str) -> Mapping[str, Any]:
    """Return the settings of a point: those of the recipe, of [[settings]] and of the point, each over the others."""
    settings: Mapping[str, Any] = recipe.framework
    for each in recipe.settings:
        if each.applies(gpu_type, dtype, _variant(table)):
            settings = merge_tables(settings, each.framework)
    return merge_tables(settings, table.framework)


def _model(table: PointTable, recipe: RecipeTable, key: str) -> tuple[Model | None, int, list[Fault]]:
    """Return the recipe's model, if any, and its sequence length, with the changes of a table; and the errors."""
    changes, errors = decode_fields(table.model, Model, f"{key}.model", required=False)
    seq_len = changes.get("seq_len", sequence_length(recipe))
    if recipe.model is None or errors or not changes:
        return recipe.model, seq_len, [*errors, *check_model_keys(changes, recipe.model, f"{key}.model")]
    changed = attrs.evolve(recipe.model, **changes)
    return changed, seq_len, [attrs.evolve(error, key=_key_in_point(error, key)) for error in check_model(changed)]


def _parallelism(
    table: PointTable, model: Model | None, gpus: int, gpus_per_node: int, key: str
) -> tuple[Parallelism | None, list[Fault]]:
    """Return the degrees at this number of GPUs; None, with the errors, if the division is impossible."""
    degrees: dict[str, Any] = {}
    errors = []
    on_gpus = f"on {counted(gpus, 'GPU')}"
    for name in DEGREES:
        rule = getattr(table, name)
        try:
            degrees[name] = evaluate_rule(rule, gpus, gpus_per_node)
        except ValueError as error:
            message = f'"{rule}" is {error} {on_gpus}'
            errors.append(Fault(message=message, key=f"{key}.{name}", expected="a positive integer"))
    if errors:
        return None, errors
    vp = None if degrees["vp"] == 1 else degrees["vp"]
    parallelism = Parallelism(**degrees | {"vp": vp}, pipeline_layout=table.pipeline_layout)
    for each in check_parallelism(model, parallelism, gpus):
        message = each.message if counted(gpus, "GPU") in each.message else f"{each.message} ({on_gpus})"
        errors.append(attrs.evolve(each, message=message, key=_key_in_point(each, key)))
    return (None if errors else parallelism), errors


def _key_in_point(error: Fault, key: str) -> str:
    """Return the key of a spec (``parallelism.tp``) as it is written in a point (``points[0].tp``)."""
    table, _, name = (error.key or "").partition(".")
    return f"{key}.model.{name}" if table == "model" else f"{key}.{name}"


def _check_formula(point: Point, recipe: RecipeTable, row: PublishedRow) -> Iterator[Fault]:
    """Yield an error if the TFLOP/s of a baseline count other FLOPs than the recipe's formula does."""
    if not row.values.get("tflops_per_gpu"):
        return
    flops, counted_flops = (_sequence_flops(point, recipe, each) for each in (recipe.flop_formula, row.flop_formula))
    difference = counted_flops / flops - 1 if flops and counted_flops else 0.0
    if abs(difference) > 1e-9:
        message = f"{row.flop_formula} counts {100 * difference:+.1f} % FLOPs compared with {recipe.flop_formula}"
        expected = "step_time_s or tokens_per_s_per_gpu instead of tflops_per_gpu"
        yield Fault(message=message, key=f"{row.place}.flop_formula", expected=expected)


def _with_baselines(point: Point, recipe: RecipeTable, rows: Sequence[PublishedRow]) -> tuple[Point, list[Fault]]:
    """Return the point with its published results, and their errors. The first row of the file is the baseline."""
    if not rows:
        return point, []
    batch = point.parallelism.global_batch_size
    flops = _sequence_flops(point, recipe, recipe.flop_formula)
    flops_per_step = None if flops is None else batch * flops
    first, *others = found = [row.as_baseline(point.gpus, batch * point.seq_len, flops_per_step) for row in rows]
    errors = [error for row in rows for error in _check_formula(point, recipe, row)]
    for row, baseline in zip(rows, found, strict=True):
        errors += check_baseline(point, row, baseline, flops_per_step)
    return attrs.evolve(point, baseline=first, other_baselines=tuple(others)), errors


def _sequence_flops(point: Point, recipe: RecipeTable, formula: FlopFormula | None) -> float | None:
    return sequence_flops(point.model, formula, flops_per_token(recipe), seq_len=point.seq_len, tp=point.parallelism.tp)
