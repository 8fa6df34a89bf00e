"""Fields that hold one of a few words, also where no type checker looks: a stranger's plugin fills them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import attrs


class WrongWordError(ValueError):
    """A value was given a word that it does not have."""


def one_of(words: Any) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """A validator for a field whose type is this ``Literal``."""
    known: tuple[str, ...] = get_args(words)

    def check(value: Any, field: attrs.Attribute[Any], word: Any) -> None:
        if word not in known:
            name = f"{type(value).__name__}.{field.name}"
            raise WrongWordError(f"{name} is {word!r}, where one of {', '.join(map(repr, known))} is due")

    return check
