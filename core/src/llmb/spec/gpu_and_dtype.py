"""Checks of the GPU type and the dtype of a run against each other and against the recipe."""

from collections.abc import Iterator, Sequence

from llmb.recipes.listing import sort_dtypes, sort_gpu_types
from llmb.values.errors import Fault
from llmb.values.model import Accelerator
from llmb.values.recipe import Recipe
from llmb.values.texts.error_text import format_choices, format_name
from llmb.values.texts.nearest_name import nearest_name

SET_BATCH = ", or set parallelism.global_batch_size"
"""The advice for GPUs without a published point: a run with its own batch size needs none."""


def check_memory(accelerator: Accelerator, recipe: Recipe) -> Iterator[Fault]:
    """Yield an error if the GPU has less memory than the recipe states that it needs."""
    has, needs = accelerator.memory_gb, recipe.memory_gb
    if has and needs and has < needs:
        message = f"{accelerator.name} has {has:g} GB of memory, but {recipe.address} needs {needs:g} GB"
        yield Fault(message=message, key="workload.gpu_type", expected=f"a GPU with at least {needs:g} GB")


def check_dtype(
    recipe: Recipe | None, accelerator: Accelerator | None, dtype: str | None, *, own_batch: bool
) -> Iterator[Fault]:
    """Yield the errors of a GPU type and a dtype that do not fit together, or that the recipe does not have.

    A part is None if its name is missing or unknown; the others are checked. If the GPU has none of the recipe's
    dtypes, no dtype fixes that, and the dtype is checked against the recipe alone.
    """
    of_recipe = _dtypes(recipe) if recipe else ()
    misfit = _no_common_dtype(accelerator, recipe) if accelerator and recipe else None
    if misfit:
        yield misfit
    if dtype is None:
        return
    if accelerator and not misfit:
        if accelerator.dtypes and dtype not in accelerator.dtypes:
            common = [each for each in accelerator.dtypes if each in of_recipe]
            yield _dtype_error(f"{accelerator.name} does not support", dtype, common or accelerator.dtypes)
        elif recipe:
            yield from check_published(recipe, accelerator.name, dtype, own_batch=own_batch)
    elif recipe and of_recipe and dtype not in of_recipe:
        yield _dtype_error(f"{recipe.address} has no configuration for", dtype, of_recipe)


def check_published(recipe: Recipe, gpu_type: str, dtype: str, *, own_batch: bool = False) -> Iterator[Fault]:
    """Yield an error for a GPU type or a dtype without a published point. With ``own_batch``, any GPU type will do."""
    if recipe.rule:
        if dtype not in recipe.dtypes:
            yield _dtype_error(f"{recipe.address} does not run in", dtype, recipe.dtypes)
        return
    missing = f"{recipe.address} has no configuration for"
    on_gpu = {point.dtype for point in recipe.points if point.gpu_type == gpu_type}
    if not on_gpu and not own_batch:
        known = sort_gpu_types(point.gpu_type for point in recipe.points)
        nearest = nearest_name(gpu_type, known)
        message, expected = f"{missing} {format_name(gpu_type)}", format_choices(known) + SET_BATCH
        yield Fault(message=message, key="workload.gpu_type", expected=expected, nearest=nearest)
    dtypes = on_gpu or {point.dtype for point in recipe.points}
    if dtype not in dtypes:
        yield _dtype_error(missing, dtype, sort_dtypes(dtypes), f" on {gpu_type}" if on_gpu else "")


def _no_common_dtype(accelerator: Accelerator, recipe: Recipe) -> Fault | None:
    """Return the error of a GPU that has none of the recipe's dtypes."""
    dtypes = _dtypes(recipe)
    if not accelerator.dtypes or {*accelerator.dtypes} & {*dtypes}:
        return None
    message = f"{accelerator.name} supports none of the dtypes of {recipe.address}: {', '.join(dtypes)}"
    types = dict.fromkeys(point.gpu_type for point in recipe.points if point.gpu_type != accelerator.name)
    expected = format_choices(types) if types else f"a GPU type with {format_choices(dtypes)}"
    return Fault(message=message, key="workload.gpu_type", expected=expected)


def _dtype_error(problem: str, dtype: str, known: Sequence[str], place: str = "") -> Fault:
    """Return the error of a dtype. Its message is the problem, the dtype and the place."""
    message, nearest = f"{problem} {format_name(dtype)}{place}", nearest_name(dtype, known)
    return Fault(message=message, key="workload.dtype", expected=format_choices(known), nearest=nearest)


def _dtypes(recipe: Recipe) -> tuple[str, ...]:
    return recipe.dtypes or tuple(dict.fromkeys(point.dtype for point in recipe.points))
