"""Recipes as JSON, tables, and workloads to start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from llmb import Baseline, Point, Recipe
from llmb.cli import output
from llmb.cli.views.tables import Column, print_table
from llmb.cli.views.text import format_number

MODEL_KEYS = ("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "experts", "top_k")
PROXIES = (
    "points with a number of layers (L) are proxies, made to fit on fewer GPUs than the model needs; "
    "they are not realistic, so no days of training are derived from them"
)
DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp")


def list_entry(recipe: Recipe) -> dict[str, Any]:
    """One recipe of the list."""
    return {
        "address": recipe.address,
        "release": recipe.release,
        "description": recipe.description,
        "gpu_types": _each(point.gpu_type for point in recipe.points),
        "dtypes": _each(point.dtype for point in recipe.points),
        "gpus": sorted({point.gpus for point in recipe.points}),
    }


def recipe_document(recipe: Recipe) -> dict[str, Any]:
    """One recipe with all its points."""
    return {
        "address": recipe.address,
        "framework": recipe.framework,
        "release": recipe.release,
        "image": recipe.image.with_digest if recipe.image else None,
        "model": {name: getattr(recipe.model, name) for name in MODEL_KEYS},
        "flop_formula": recipe.flop_formula,
        "window": recipe.window if recipe.window == "last" else list(recipe.window),
        "points": [_point(point) for point in recipe.points],
    }


def _point(point: Point) -> dict[str, Any]:
    parallelism = point.parallelism
    return {
        "gpu_type": point.gpu_type,
        "dtype": point.dtype,
        "gpus": point.gpus,
        "layers": point.model.layers,
        "seq_len": point.model.seq_len,
        "global_batch_size": parallelism.global_batch_size,
        "micro_batch_size": parallelism.micro_batch_size,
        "gradient_accumulation": parallelism.gradient_accumulation(point.gpus),
        "proxy": point.proxy,
        "parallelism": {
            **{name: getattr(parallelism, name) for name in DEGREES},
            "dp": parallelism.data_parallel(point.gpus),
            "fsdp": parallelism.fsdp,
        },
        "recompute_layers": point.recompute_layers,
        "offload_layers": point.offload_layers,
        "cuda_graphs": point.cuda_graphs,
        "baseline": attrs.asdict(point.baseline) if point.baseline else None,
    }


def workload_toml(recipe: Recipe, schedulers: Mapping[str, Mapping[str, str]]) -> str:
    """A workload spec for the recipe's first point, with what else could be written beside it.

    ``schedulers`` are the installed ones, the best first, each with the keys that it needs and what they hold; without
    any, the line is left for the user to fill in.
    """
    best, *others = schedulers or ("...",)
    first = recipe.points[0]
    dtypes = _each(point.dtype for point in recipe.points if point.gpu_type == first.gpu_type)
    gpus = [point.gpus for point in recipe.points if (point.gpu_type, point.dtype) == (first.gpu_type, first.dtype)]
    types = _each(point.gpu_type for point in recipe.points)
    other = _quoted(others)
    lines = [
        f"# {recipe.description} ({recipe.address}, release {recipe.release})",
        "",
        "[workload]",
        f'recipe = "{recipe.address}"',
        f'gpu_type = "{first.gpu_type}"{_choice(types)}',
        f'dtype = "{first.dtype}"{_choice(dtypes)}',
        f"gpus = {first.gpus}{_choice(gpus)}",
        f"# steps = {recipe.steps}",
        "",
        '[target] # or name = "..." alone: a table of your targets file',
        f'scheduler = "{best}"{f" # or {other}" if other else ""}',
        *(f"# {key} = ... # needed: {what}" for key, what in schedulers.get(best, {}).items()),
        '# host = "..." # a name that ssh knows; without it this machine',
        '# workdir = "..." # where runs and images are kept there; on a cluster shared by its nodes',
    ]
    return "\n".join(lines) + "\n"


def _choice(values: Sequence[Any]) -> str:
    return f" # any of {_quoted(values)}; a list runs each" if len(values) > 1 else ""


def _quoted(values: Sequence[Any]) -> str:
    return ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)


LIST = (
    Column("recipe"),
    Column("GPU types"),
    Column("dtypes"),
    Column("GPUs", optional=True),
    Column("release", optional=True),
    Column("what it is", wraps=40, optional=True),
)


def print_list(recipes: Iterable[Recipe]) -> None:
    """One line a recipe."""
    print_table(LIST, [list_row(recipe) for recipe in recipes])


def list_row(recipe: Recipe) -> tuple[str, ...]:
    """Address, GPU types, dtypes, numbers of GPUs, release and description."""
    row = list_entry(recipe)
    numbers = [str(each) for each in row["gpus"]]
    span = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return (
        row["address"],
        ", ".join(row["gpu_types"]),
        ", ".join(row["dtypes"]),
        span,
        row["release"],
        row["description"],
    )


POINTS = (
    Column("GPU"),
    Column("dtype"),
    Column("GPUs", right=True),
    Column("GBS", right=True),
    Column("MBS", right=True, optional=True),
    Column("parallelism", wraps=24),
    Column("step s", right=True, optional=True),
    Column("tokens/s", right=True, optional=True),
    Column("MFU %", right=True, optional=True),
    Column("days to 1T", right=True, optional=True),
)


def print_points(recipe: Recipe) -> None:
    """The recipe, then one line a point with the figures of its baseline."""
    output.print_text(f"{recipe.address}, release {recipe.release}: {recipe.description}")
    output.print_text(f"source: {recipe.source}; image: {recipe.image.with_digest if recipe.image else 'none'}")
    rows = [
        (
            point.gpu_type,
            point.dtype,
            str(point.gpus),
            str(point.parallelism.global_batch_size),
            str(point.parallelism.micro_batch_size),
            _degrees(point),
            *_published(point.baseline),
        )
        for point in _in_order([*recipe.points, *recipe.variants])
    ]
    print_table(POINTS, rows)
    for note in _each(point.baseline.note for point in recipe.points if point.baseline and point.baseline.note):
        output.print_text(f"note: {note}")
    if any(point.proxy for point in recipe.points):
        output.print_text(f"note: {PROXIES}")


def _in_order(points: Sequence[Point]) -> list[Point]:
    """By GPU type and dtype, each as it first appears, and then by size."""
    types, dtypes = _each(point.gpu_type for point in points), _each(point.dtype for point in points)
    return sorted(points, key=lambda point: (types.index(point.gpu_type), dtypes.index(point.dtype), point.gpus))


def _published(baseline: Baseline | None) -> tuple[str, ...]:
    if baseline is None:
        return ("", "", "", "")
    mfu = None if baseline.mfu is None else 100 * baseline.mfu
    figures = (baseline.step_time_s, baseline.tokens_per_s, mfu, baseline.days_per_1t_tokens)
    return tuple(format_number(figure) for figure in figures)


def _degrees(point: Point) -> str:
    """The degrees that are not 1, with the proxy's layers where it is one, and the options that a variant needs."""
    degrees = {name: getattr(point.parallelism, name) for name in (*DEGREES, "fsdp")}
    used = [f"{name}{degree}" for name, degree in degrees.items() if degree not in (None, 1)]
    options = [f"({name} = {value})" for name, value in point.options.items()]
    return " ".join([*used, *([f"L{point.model.layers}"] if point.proxy else []), *options])


def _each(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
