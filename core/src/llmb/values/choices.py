"""Fields that accept only a few words. They are checked at run time, because plugins may not use a type checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import attrs


class WrongWordError(ValueError):
    """A word that a field does not accept."""


def one_of(words: Any) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """Return a validator for a field whose type is this ``Literal``."""
    known: tuple[str, ...] = get_args(words)

    def check(value: Any, field: attrs.Attribute[Any], word: Any) -> None:
        if word not in known:
            name = f"{type(value).__name__}.{field.name}"
            raise WrongWordError(f"{name} is {word!r}, where one of {', '.join(map(repr, known))} is due")

    return check
