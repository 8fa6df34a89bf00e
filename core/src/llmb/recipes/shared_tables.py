"""Tables that several recipes share: files beside the recipes, which each recipe overrides."""

import tomllib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from llmb.values.error_text import invalid_value, nearest_name
from llmb.values.errors import Fault, RecipeError
from llmb.values.frozen import FrozenMap, merged


def with_shared(tables: Mapping[str, Any], shared: Mapping[str, str], file: str) -> Mapping[str, Any]:
    """Return the tables of a recipe merged into those of its shared files, without the key ``shared``.

    ``shared`` has the texts of all shared files by name. Raise RecipeError for an unknown name.
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
            error = Fault(message=message, file=file, key=f"shared[{index}]", expected=expected, nearest=nearest)
            raise RecipeError(error)
        below = merged(below, parse_toml(shared[name], str(PurePath(file).with_name("shared") / f"{name}.toml")))
    return merged(below, {key: value for key, value in tables.items() if key != "shared"})


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Parse TOML text into tables. Raise RecipeError, which names the file, if the text is invalid."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(Fault(message=f"invalid TOML: {error}", file=file)) from None
