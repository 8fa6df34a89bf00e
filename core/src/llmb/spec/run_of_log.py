"""The run that wrote a log, as far as a recipe and a number of GPUs determine it."""

from typing import Any

import attrs

from llmb.plugins.registry import PluginRegistry
from llmb.spec.choose_published_point import check_gpus, example_points, published_point, reword_for_arguments
from llmb.spec.resolve import resolve
from llmb.spec.resolve_run import known_accelerators, unknown_gpu_type
from llmb.spec.spec_tables import Document
from llmb.spec.targets import with_any_target
from llmb.values.errors import RecipeError, SpecError
from llmb.values.recipe import Point, Recipe
from llmb.values.run import Run


def point_of_log(
    recipe: Recipe, registry: PluginRegistry, gpu_type: str, dtype: str, gpus: int, variant: str | None
) -> Point:
    """Return the point published for this combination. Raise RecipeError with the part that is not published.

    A recipe without [[points]] has one for any number of GPUs. Without a baseline, the GPU type must be known.
    """
    point = published_point(recipe, gpu_type, dtype, gpus, variant)
    if recipe.rule and point.baseline is None and gpu_type not in (known := known_accelerators(registry)):
        raise RecipeError(reword_for_arguments(unknown_gpu_type(gpu_type, known)))
    return point


def run_of_log(address: str, gpus: int | None, registry: PluginRegistry) -> Run[Any]:
    """Return a run of a recipe, by default on its first published number of GPUs.

    Raise RecipeError or PluginError for an unknown recipe, and SpecError if it does not run on these GPUs.
    """
    if gpus is not None:
        check_gpus(gpus)
    points = example_points(registry.recipe(address))
    point = next((each for each in points if each.gpus == gpus), points[0])
    return run_of_point(address, attrs.evolve(point, gpus=gpus or point.gpus, variant=None), registry)


def run_of_point(address: str, point: Point, registry: PluginRegistry) -> Run[Any]:
    """Return a run of a configuration of a recipe. Raise PluginError, or SpecError if the recipe does not run so."""
    workload = {"recipe": address, "gpu_type": point.gpu_type, "dtype": point.dtype, "gpus": point.gpus}
    workload |= {"variant": point.variant} if point.variant else {}
    document = Document(None, with_any_target({"workload": workload}, registry))
    found, errors = resolve(document, registry, any_target=True)
    if errors:
        raise SpecError(*map(reword_for_arguments, errors))
    return found.runs[0].run
