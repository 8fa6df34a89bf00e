"""What several recipes have in common: tables of files beside them, which come below a recipe's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from llmb.values.error_text import invalid_value
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap, merged
from llmb.values.nearest import nearest_name


def with_shared(tables: Mapping[str, Any], shared: Mapping[str, str], file: str) -> Mapping[str, Any]:
    """The recipe's tables over those of the files that its key ``shared`` names, without that key.

    ``shared`` has the texts of all such files by name. Raises RecipeError for a name that is not there.
    """
    names = tables.get("shared", [])
    if not isinstance(names, list):
        expected = "a list of names of shared files"
        raise RecipeError(Fault(message=invalid_value(names), file=file, key="shared", expected=expected))
    below: Mapping[str, Any] = FrozenMap()
    for index, name in enumerate(names):
        if name not in shared:
            expected = f"one of {', '.join(sorted(shared))}" if shared else "a file shared/NAME.toml beside it"
            message, nearest = invalid_value(name), nearest_name(str(name), shared)
            fault = Fault(message=message, file=file, key=f"shared[{index}]", expected=expected, nearest=nearest)
            raise RecipeError(fault)
        below = merged(below, toml(shared[name], str(PurePath(file).with_name("shared") / f"{name}.toml")))
    return merged(below, {key: value for key, value in tables.items() if key != "shared"})


def toml(text: str, file: str) -> dict[str, Any]:
    """The text's tables. Raises RecipeError that names the file where it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(Fault(message=f"is not TOML: {error}", file=file)) from None
