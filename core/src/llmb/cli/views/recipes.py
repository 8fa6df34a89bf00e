"""Recipes as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

import llmb
from llmb.cli import output
from llmb.cli.views.tables import Column, format_number, print_table

MODEL_KEYS = ("layers", "hidden", "ffn", "heads", "query_groups", "vocab", "experts", "top_k")
DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp")
ANY = "any"  # of a recipe without published configurations
PROXIES_NOTE = (
    "configurations with a number of layers (L) are proxies: reduced to fit on fewer GPUs than the model needs; "
    "they are not realistic, so their days of training are not computed"
)

LIST_COLUMNS = (
    Column("recipe"),
    Column("GPU types", wraps=12),
    Column("dtypes", wraps=10),
    Column("GPUs", optional=True),
    Column("baselines", optional=True),
    Column("release", optional=True),
    Column("older", wraps=10, optional=True),
    Column("description", wraps=40, optional=True),
)
POINT_COLUMNS = (
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


def list_document(recipes: Iterable[llmb.Recipe]) -> dict[str, Any]:
    """Return the list of recipes as ``llmb recipes --json`` prints it."""
    return {"recipes": [_list_entry(recipe) for recipe in recipes]}


def _list_entry(recipe: llmb.Recipe) -> dict[str, Any]:
    return {
        "address": recipe.address,
        "release": recipe.release,
        "description": recipe.description,
        "gpu_types": _distinct(point.gpu_type for point in recipe.points),
        "dtypes": list(recipe.dtypes) or _distinct(point.dtype for point in recipe.points),
        "gpus": sorted({point.gpus for point in recipe.points}),
        "points": len(recipe.points),
        "baselines": sum(point.baseline is not None for point in recipe.points),
    }


def recipe_document(recipe: llmb.Recipe) -> dict[str, Any]:
    """Return one recipe, with all published configurations, as ``llmb recipes ADDRESS --json`` prints it."""
    return {
        "address": recipe.address,
        "framework": recipe.framework,
        "release": recipe.release,
        "image": recipe.image.with_digest if recipe.image else None,
        "model": _model_document(recipe.model),
        "flop_formula": recipe.flop_formula,
        "window": recipe.window if recipe.window == "last" else list(recipe.window),
        "points": [_point_document(point) for point in recipe.points],
    }


def _model_document(model: llmb.Model | None) -> dict[str, Any]:
    """Return the sizes that every model has, and those of its kind (experts, MLA, layer pattern) that it states."""
    sizes = {name: getattr(model, name, None) for name in MODEL_KEYS}
    if model is None:
        return sizes
    of_its_kind = attrs.asdict(model, filter=lambda field, value: value != field.default)
    return sizes | {name: value for name, value in of_its_kind.items() if name != "seq_len"}


def _point_document(point: llmb.Point) -> dict[str, Any]:
    parallelism = point.parallelism
    return {
        "gpu_type": point.gpu_type,
        "dtype": point.dtype,
        "gpus": point.gpus,
        "variant": point.variant,
        "layers": point.model.layers if point.model else None,
        "seq_len": point.seq_len,
        "global_batch_size": parallelism.global_batch_size,
        "micro_batch_size": parallelism.micro_batch_size,
        "gradient_accumulation": parallelism.gradient_accumulation(point.gpus),
        "proxy": point.proxy,
        "parallelism": {
            **{name: getattr(parallelism, name) for name in DEGREES},
            "dp": parallelism.data_parallel(point.gpus),
            "fsdp": parallelism.fsdp,
            "pipeline_layout": parallelism.pipeline_layout,
        },
        "recompute_layers": point.recompute_layers,
        "offload_layers": point.offload_layers,
        "cuda_graphs": point.cuda_graphs,
        "baseline": attrs.asdict(point.baseline) if point.baseline else None,
        "other_baselines": [attrs.asdict(each) for each in point.other_baselines],
    }


def print_list(recipes: Iterable[llmb.Recipe]) -> None:
    """Print one line per recipe: its newest release, and the numbers of the older ones."""
    folded = llmb.fold_releases(recipes)
    print_table(LIST_COLUMNS, [list_row(recipe, older) for recipe, older in folded])
    if example := next((f"{_name(recipe)}@{older[0]}" for recipe, older in folded if older), None):
        output.print_prose(f"note: older releases are available too, such as {example}")


def _name(recipe: llmb.Recipe) -> str:
    """Return the address without the release."""
    return recipe.address.partition("@")[0]


def list_row(recipe: llmb.Recipe, older: Sequence[str]) -> tuple[str, ...]:
    """Return address, GPU types, dtypes, numbers of GPUs, baselines, release, older releases and description."""
    entry = _list_entry(recipe)
    numbers = [str(each) for each in entry["gpus"]]
    is_open = recipe.rule is not None
    span = ANY if is_open else numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    types, dtypes = ANY if is_open else ", ".join(entry["gpu_types"]), ", ".join(entry["dtypes"])
    baselines = f"{entry['baselines']} of {entry['points']}" if entry["baselines"] else "-"
    return recipe.address, types, dtypes, span, baselines, recipe.release, ", ".join(older), recipe.description


def print_points(recipe: llmb.Recipe) -> None:
    """Print the recipe, then one line per published configuration with the metrics of its baseline."""
    output.print_prose(f"{recipe.address}, release {recipe.release}: {recipe.description}")
    output.print_prose(f"source: {recipe.source}; image: {recipe.image.with_digest if recipe.image else 'none'}")
    if len(recipe.releases) > 1:
        output.print_prose(f"releases: {', '.join(recipe.releases)}")
    if recipe.rule:
        output.print_prose(f"runs on any GPU type and any number of GPUs, in {', '.join(recipe.dtypes)}")
    if not recipe.points:
        return
    rows = [
        (
            point.gpu_type,
            " ".join(filter(None, (point.dtype, point.variant))),
            str(point.gpus),
            str(point.parallelism.global_batch_size),
            str(point.parallelism.micro_batch_size),
            _describe_parallelism(point, recipe.model),
            *_baseline_cells(point.baseline),
        )
        for point in _sorted(recipe.points)
    ]
    print_table(POINT_COLUMNS, rows)
    for note in _distinct(point.baseline.note for point in recipe.points if point.baseline and point.baseline.note):
        output.print_prose(f"note: {note}")
    if any(point.proxy for point in recipe.points):
        output.print_prose(f"note: {PROXIES_NOTE}")


def _sorted(points: Sequence[llmb.Point]) -> list[llmb.Point]:
    """Sort by GPU type and dtype, each in the recipe's order, and then by the number of GPUs."""
    types, dtypes = _distinct(point.gpu_type for point in points), _distinct(point.dtype for point in points)
    return sorted(points, key=lambda point: (types.index(point.gpu_type), dtypes.index(point.dtype), point.gpus))


def _baseline_cells(baseline: llmb.Baseline | None) -> tuple[str, ...]:
    if baseline is None:
        return ("", "", "", "")
    mfu = None if baseline.mfu is None else 100 * baseline.mfu
    values = (baseline.step_time_s, baseline.tokens_per_s, mfu, baseline.days_per_1t_tokens)
    return tuple(map(format_number, values))


def _describe_parallelism(point: llmb.Point, published: llmb.Model | None) -> str:
    """Return the degrees other than 1, the layers of a proxy, and its hidden size if that is not the published one."""
    degrees = {name: getattr(point.parallelism, name) for name in (*DEGREES, "fsdp")}
    used = [f"{name}{degree}" for name, degree in degrees.items() if degree not in (None, 1)]
    if not point.proxy or point.model is None:
        return " ".join(used)
    sizes = [f"L{point.model.layers}"]
    sizes += [f"h{point.model.hidden}"] if published and point.model.hidden != published.hidden else []
    return " ".join([*used, "proxy", *sizes])


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
