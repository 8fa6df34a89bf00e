"""A workload spec to start from: the first published configuration of a recipe, with the alternatives as comments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from llmb.plugins.addresses import is_file_address
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.listing import sort_dtypes, sort_gpu_types
from llmb.spec.choose_published_point import example_points
from llmb.spec.resolve_run import known_accelerators
from llmb.spec.targets import rank_schedulers
from llmb.values.recipe import Recipe
from llmb.values.types.check_arguments import check_arguments


@check_arguments
def starter_workload(address: str, *, scheduler: str | None = None) -> str:
    """Return a workload spec, as TOML, for the first published configuration of a recipe.

    Comments name the other configurations and schedulers. ``scheduler`` is by default the installed one that fits
    best. Raise RecipeError for an unknown recipe, and PluginError for an unknown framework or scheduler.
    """
    registry = PluginRegistry()
    recipe = registry.recipe(address)
    point = example_points(recipe)[0]
    accelerator = known_accelerators(registry).get(point.gpu_type)
    several_nodes = accelerator is not None and point.gpus > accelerator.gpus_per_node
    ranked = rank_schedulers(registry, several_nodes=several_nodes)
    best = scheduler or next(iter(ranked), "...")
    if scheduler:
        registry.scheduler(scheduler)
    if is_file_address(address):
        recipe = attrs.evolve(recipe, address=address)
    return _format(recipe, best, ranked.get(best, {}), [name for name in ranked if name != best])


def _format(recipe: Recipe, scheduler: str, required: Mapping[str, str], others: Sequence[str]) -> str:
    points = example_points(recipe)
    first = points[0]
    types = sort_gpu_types(point.gpu_type for point in points)
    dtypes = sort_dtypes(point.dtype for point in points if point.gpu_type == first.gpu_type or not recipe.points)
    alike = [point for point in points if (point.gpu_type, point.dtype) == (first.gpu_type, first.dtype)]
    gpus = sorted({point.gpus for point in alike})
    variants = list(dict.fromkeys(point.variant for point in alike if point.variant))
    any_type, any_number = _alternatives(types), _alternatives(gpus)
    if not recipe.points:
        any_type, any_number = " # or any other type; a list runs each", " # or any other number; a list runs each"
    lines = [
        f"# {recipe.description} ({recipe.address}, release {recipe.release})",
        "",
        "[workload]",
        f"recipe = {_quoted([recipe.address])}",
        f'gpu_type = "{first.gpu_type}"{any_type}',
        f'dtype = "{first.dtype}"{_alternatives(dtypes)}',
        f"gpus = {first.gpus}{any_number}",
        *([f'# variant = "{variants[0]}"{_alternatives(variants)}'] if variants else []),
        f"# steps = {recipe.steps}",
        "",
        '[target] # or only name = "...", a target of your targets file',
        f'scheduler = "{scheduler}"{f" # or {_quoted(others)}" if others else ""}',
        *(f"# {key} = ... # required: {value_type}" for key, value_type in required.items()),
        '# host = "..." # a host name of your SSH configuration; default: this machine',
        '# workdir = "..." # directory for runs and images; on a cluster, all nodes must share it',
    ]
    return "\n".join(lines) + "\n"


def _alternatives(values: Sequence[Any]) -> str:
    return f" # any of {_quoted(values)}; a list runs each" if len(values) > 1 else ""


def _quoted(values: Sequence[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)  # which TOML reads too
