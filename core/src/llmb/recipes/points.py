"""The [[points]] of a recipe: tables whose lists of gpu_type, dtype and gpus stand for every combination."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from llmb.recipes.baselines import PointKey, Published, point_name
from llmb.recipes.scaling import rule, scaled
from llmb.values.error_text import counted
from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap, merged
from llmb.values.model import Model, Parallelism
from llmb.values.model_rules import check_model, check_parallelism
from llmb.values.recipe import Point
from llmb.values.tables import Reader, check_table, flag, listed, natural, raw, settings, string, whole

MODEL_CHECKS: Mapping[str, Reader] = {
    **dict.fromkeys(("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len"), whole),
    **dict.fromkeys(("experts", "top_k", "flops_vocab"), whole),
    **dict.fromkeys(("gated", "embedding_and_loss_as_layers"), flag),
}
MODEL_REQUIRED = ("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "seq_len")

_DEGREES = tuple(field.name for field in attrs.fields(Parallelism))
_EXTRAS: Mapping[str, Reader] = {
    "proxy": flag,
    "recompute_layers": natural,
    "offload_layers": natural,
    "cuda_graphs": flag,
}
_CHECKS: Mapping[str, Reader] = {
    "gpu_type": listed(string, distinct=True),
    "dtype": listed(string, distinct=True),
    "gpus": listed(whole, distinct=True),
    **dict.fromkeys(_DEGREES, rule),
    **_EXTRAS,
    "model": raw,
    "framework": settings,
    "options": settings,
}
_REQUIRED = ("gpu_type", "dtype", "gpus", "global_batch_size")


def read_points(
    tables: Sequence[Any],
    *,
    model: Model | None,
    framework: Mapping[str, Any],
    baselines: Mapping[PointKey, Published],
) -> tuple[tuple[Point, ...], list[Fault]]:
    """Every combination of every table, and all that is wrong with them.

    ``model`` and ``framework`` are the recipe's own, which a table may override in part. Without a model (its table
    is wrong) the tables are still checked, but for what their numbers amount to.
    """
    points: dict[tuple[PointKey, Mapping[str, Any]], tuple[str, Point]] = {}
    faults: list[Fault] = []
    for index, table in enumerate(tables):
        key = f"points[{index}]"
        values, wrong = check_table(table, key, _CHECKS, _REQUIRED)
        own_model, wrong_model = _model(model, values.get("model", {}), key)
        faults += [*wrong, *wrong_model]
        if wrong or own_model is None:
            continue
        expanded, wrong = _expand(values, own_model, merged(framework, values.get("framework", {})), key)
        faults += wrong
        for point in expanded:
            name = point_key(point)
            if (name, point.options) in points:
                before, _ = points[name, point.options]
                faults.append(Fault(message=f"{point_name(name)} is in {before} already", key=key))
            points.setdefault((name, point.options), (key, point))
    return tuple(_with_baseline(point, baselines) for _, point in points.values()), faults


def point_key(point: Point) -> PointKey:
    """What names this point in its recipe."""
    return point.gpu_type, point.dtype, point.gpus


def _model(model: Model | None, table: object, key: str) -> tuple[Model | None, list[Fault]]:
    values, faults = check_table(table, f"{key}.model", MODEL_CHECKS)
    if model is None or faults or not values:
        return (None if faults else model), faults
    changed = attrs.evolve(model, **values)
    return changed, [attrs.evolve(fault, key=_moved(fault, key)) for fault in check_model(changed)]


def _expand(
    values: Mapping[str, Any], model: Model, framework: FrozenMap[str, Any], key: str
) -> tuple[list[Point], list[Fault]]:
    faults: list[Fault] = []
    divided: dict[int, Parallelism] = {}
    for gpus in values["gpus"]:
        parallelism, wrong = _parallelism(values, model, gpus, key)
        faults += wrong
        if parallelism is not None:
            divided[gpus] = parallelism
    extras = {name: values[name] for name in _EXTRAS if name in values}
    points = [
        Point(
            gpu_type=gpu_type,
            dtype=dtype,
            gpus=gpus,
            model=model,
            parallelism=parallelism,
            settings=framework,
            options=values.get("options", FrozenMap()),
            **extras,
        )
        for gpu_type, dtype in itertools.product(values["gpu_type"], values["dtype"])
        for gpus, parallelism in divided.items()
    ]
    return points, faults


def _parallelism(
    values: Mapping[str, Any], model: Model, gpus: int, key: str
) -> tuple[Parallelism | None, list[Fault]]:
    """The rules at this number of GPUs, and whether what they amount to can be."""
    degrees: dict[str, Any] = {}
    faults = []
    where = counted(gpus, "GPU")
    for name in _DEGREES:
        if name in values:
            try:
                degrees[name] = scaled(values[name], gpus)
            except ValueError as error:
                message = f'"{values[name]}" is {error} on {where}'
                faults.append(Fault(message=message, key=f"{key}.{name}", expected="a positive integer"))
    if faults:
        return None, faults
    parallelism = Parallelism(**degrees | {"vp": None if degrees.get("vp") == 1 else degrees.get("vp")})
    for fault in check_parallelism(model, parallelism, gpus):
        message = fault.message if where in fault.message else f"{fault.message} (on {where})"
        faults.append(attrs.evolve(fault, message=message, key=_moved(fault, key)))
    return (None if faults else parallelism), faults


def _moved(fault: Fault, key: str) -> str:
    """The key of a workload spec (``parallelism.tp``) as it is written in a point (``points[0].tp``)."""
    table, _, name = (fault.key or "").partition(".")
    return f"{key}.model.{name}" if table == "model" else f"{key}.{name}"


def _with_baseline(point: Point, baselines: Mapping[PointKey, Published]) -> Point:
    published = baselines.get(point_key(point))
    if point.options or published is None:
        return point
    tokens_per_step = point.parallelism.global_batch_size * point.model.seq_len
    return attrs.evolve(point, baseline=published.at(point.gpus, tokens_per_step))
