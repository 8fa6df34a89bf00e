"""Options of MaxText in [framework]."""

from collections.abc import Mapping

import attrs

from llmb import FrozenMap


@attrs.frozen(kw_only=True)
class MaxTextOptions:
    """Options in [framework]."""

    config: Mapping[str, str | int | float | bool] = attrs.field(factory=FrozenMap)
    """Arguments of MaxText in both training phases; they override the recipe's. Default: empty. Example: ``{
    remat_policy = "full" }``
    """
