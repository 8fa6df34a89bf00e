"""Lists of recipes: those with certain points, and the order of GPU types and dtypes."""

from collections.abc import Iterable, Iterator

import attrs

from llmb.recipes.accelerators import accelerators
from llmb.values.errors import Fault
from llmb.values.model import Accelerator
from llmb.values.recipe import Point, Recipe
from llmb.values.texts.error_text import unknown_name
from llmb.values.types.check_arguments import check_arguments


@attrs.frozen(kw_only=True)
class PointFilter:
    """The recipes and points that a list contains. A field that is None selects all."""

    framework: str | None = None
    gpu_type: str | None = None
    dtype: str | None = None
    gpus: int | None = None
    with_baseline: bool = False

    @property
    def selects_points(self) -> bool:
        """True if the filter leaves out some points of a recipe."""
        return attrs.evolve(self, framework=None) != PointFilter()

    def narrow(self, recipe: Recipe) -> Recipe | None:
        """Return the recipe with the selected points alone, or None if it has none.

        A recipe with a rule runs on any GPU type and any number of GPUs, so it needs no selected point.
        """
        if self.framework not in (None, recipe.framework):
            return None
        if not self.selects_points:
            return recipe
        points = tuple(point for point in recipe.points if self._selects(point))
        is_open = recipe.rule is not None and not self.with_baseline and self.dtype in (None, *recipe.dtypes)
        return attrs.evolve(recipe, points=points) if points or is_open else None

    def unknown_names(
        self, recipes: Iterable[Recipe], known: Iterable[Accelerator], frameworks: Iterable[str]
    ) -> Iterator[Fault]:
        """Yield an error for each name that no recipe and no known accelerator has, with the nearest of the names."""
        points, known = [point for recipe in recipes for point in recipe.points], list(known)
        gpu_types = (*(each.name for each in known), *(point.gpu_type for point in points))
        dtypes = (*(dtype for each in known for dtype in each.dtypes), *(point.dtype for point in points))
        for key, label, names in (
            ("framework", "framework", sorted(frameworks)),
            ("gpu_type", "GPU type", sort_gpu_types(gpu_types)),
            ("dtype", "dtype", sort_dtypes(dtypes)),
        ):
            name = getattr(self, key)
            if name is not None and name not in names:
                yield unknown_name(f"unknown {label} {name}", name, names, key=key)

    def _selects(self, point: Point) -> bool:
        return (
            self.gpu_type in (None, point.gpu_type)
            and self.dtype in (None, point.dtype)
            and self.gpus in (None, point.gpus)
            and (point.baseline is not None or not self.with_baseline)
        )


@check_arguments
def sort_gpu_types(names: Iterable[str]) -> list[str]:
    """Sort GPU types without repetitions, the newest first: by ``gpus.toml``, then those that it lacks by name."""
    order = {name: place for place, name in enumerate(reversed(tuple(accelerators())))}
    return sorted(set(names), key=lambda name: (order.get(name, len(order)), name))


@check_arguments
def sort_dtypes(names: Iterable[str]) -> list[str]:
    """Sort dtypes without repetitions, the widest first: by their order in ``gpus.toml``, then by name."""
    known = dict.fromkeys(dtype for each in accelerators().values() for dtype in each.dtypes)
    order = {name: place for place, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (order.get(name, len(order)), name))
