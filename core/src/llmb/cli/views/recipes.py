"""Recipes as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

import llmb
from llmb.cli import output
from llmb.cli.views.numbers import format_number
from llmb.cli.views.tables import Column, print_table

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
CONFIGURATION_COLUMNS = (
    Column("GPU"),
    Column("dtype"),
    Column("GPUs", right=True),
    Column("GBS", right=True),
    Column("MBS", right=True, optional=True),
    Column("parallelism", wraps=24),
)
RESULT_COLUMNS = (
    Column("s/step", right=True, optional=True),
    Column("TFLOP/s per GPU", right=True, optional=True),
    Column("release", optional=True),
    Column("tokens/s", right=True, optional=True),
    Column("MFU %", right=True, optional=True),
    Column("days to 1T", right=True, optional=True),
    Column("other releases", wraps=24, optional=True),
)
POINT_COLUMNS = (*CONFIGURATION_COLUMNS, *RESULT_COLUMNS)


def list_document(recipes: Iterable[llmb.Recipe]) -> dict[str, Any]:
    """Return the list of recipes as ``llmb recipes --json`` prints it."""
    return {"recipes": [_list_entry(recipe) for recipe in recipes]}


def _list_entry(recipe: llmb.Recipe) -> dict[str, Any]:
    return {
        "address": recipe.address,
        "release": recipe.release,
        "description": recipe.description,
        "gpu_types": llmb.sort_gpu_types(point.gpu_type for point in recipe.points),
        "dtypes": llmb.sort_dtypes(recipe.dtypes or (point.dtype for point in recipe.points)),
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
    if example := next((f"{recipe.address.partition('@')[0]}@{older[0]}" for recipe, older in folded if older), None):
        output.print_prose(f"note: older releases are available too, such as {example}")


def list_row(recipe: llmb.Recipe, older: Sequence[str]) -> tuple[str, ...]:
    """Return address, GPU types, dtypes, numbers of GPUs, baselines, release, older releases and description."""
    entry = _list_entry(recipe)
    types = span = ANY
    if recipe.rule is None:
        types, gpus = ", ".join(entry["gpu_types"]), entry["gpus"]
        span = f"{gpus[0]} to {gpus[-1]}" if len(gpus) > 1 else str(gpus[0])
    dtypes = ", ".join(entry["dtypes"])
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
            _describe_parallelism(point, recipe),
            *_baseline_cells(point),
        )
        for point in _sorted(recipe.points)
    ]
    shown = [at for at, column in enumerate(POINT_COLUMNS) if _is_shown(column, [row[at] for row in rows], recipe)]
    print_table([POINT_COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows])
    _print_sources(recipe)
    if any(point.proxy for point in recipe.points):
        output.print_prose(f"note: {PROXIES_NOTE}")


def _is_shown(column: Column, cells: Sequence[str], recipe: llmb.Recipe) -> bool:
    """Check whether a column of published results has any value, and any release that is not the recipe's."""
    if column not in RESULT_COLUMNS:
        return True
    return any(cells) if column.title != "release" else bool({*cells} - {"", recipe.release})


def _print_sources(recipe: llmb.Recipe) -> None:
    """Print the sources of the baselines that differ from the recipe's source, and the notes on single baselines."""
    baselines = [point.baseline for point in recipe.points if point.baseline]
    for source in dict.fromkeys(each.source for each in baselines if each.source != recipe.source):
        output.print_prose(f"baselines: {source}")
    for note in dict.fromkeys(each.note for each in baselines if each.note):
        output.print_prose(f"note: {note}")


def _sorted(points: Sequence[llmb.Point]) -> list[llmb.Point]:
    """Sort by GPU type, dtype and number of GPUs, as all lists do. Equal points keep the publisher's order."""
    types = llmb.sort_gpu_types(point.gpu_type for point in points)
    dtypes = llmb.sort_dtypes(point.dtype for point in points)
    variants = list(dict.fromkeys(point.variant for point in points))

    def place(point: llmb.Point) -> tuple[int, ...]:
        ranks = types.index(point.gpu_type), dtypes.index(point.dtype), variants.index(point.variant)
        return (*ranks, point.gpus)

    return sorted(points, key=place)


def _baseline_cells(point: llmb.Point) -> tuple[str, ...]:
    """Return the columns of the published results of a point. They are empty without a baseline."""
    baseline = point.baseline
    if baseline is None:
        return ("",) * len(RESULT_COLUMNS)
    others = [f"{format_number(each.tflops_per_gpu)}@{each.release}" for each in point.other_baselines]
    return (
        format_number(baseline.step_time_s),
        format_number(baseline.tflops_per_gpu),
        baseline.release,
        format_number(baseline.tokens_per_s),
        "" if baseline.mfu is None else format_number(100 * baseline.mfu),
        format_number(baseline.days_per_1t_tokens),
        ", ".join(others),
    )


def _describe_parallelism(point: llmb.Point, recipe: llmb.Recipe) -> str:
    """Return the degrees other than 1, the layers of a proxy, and sizes that are not those of the recipe.

    These are the hidden size of a proxy, and the length of the sequences of a complete model.
    """
    degrees = {name: getattr(point.parallelism, name) for name in (*DEGREES, "fsdp")}
    parts = [f"{name}{degree}" for name, degree in degrees.items() if degree not in (None, 1)]
    if point.proxy and point.model:
        parts += ["proxy", f"L{point.model.layers}"]
        if recipe.model and point.model.hidden != recipe.model.hidden:
            parts.append(f"h{point.model.hidden}")
    elif point.seq_len != recipe.seq_len:
        parts.append(f"s{point.seq_len}")
    return " ".join(parts)
