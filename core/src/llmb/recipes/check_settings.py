"""Check the [framework] tables of a recipe against the keys of its framework."""

from llmb.values.errors import RecipeError, located
from llmb.values.recipe import Recipe
from llmb.values.typed import decode_fields


def check_settings(recipe: Recipe, cls: type) -> None:
    """Raise RecipeError if a point of the recipe has settings that are no fields of ``cls`` or have invalid values.

    A published point has the merged settings of all tables. A recipe with a rule has only those of [framework].
    """
    tables = dict.fromkeys(point.settings for point in recipe.points) or (recipe.settings,)
    errors = [error for table in tables for error in decode_fields(table, cls, "framework")[1]]
    if errors:
        raise RecipeError(*located(dict.fromkeys(errors), recipe.file))
