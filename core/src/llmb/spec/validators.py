"""The validators of attrs classes, each run under the key of its own field, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import cattrs
from cattrs.errors import AttributeValidationNote, ClassValidationError, ForbiddenExtraKeysError

from llmb.values.errors import SpecError


def validated(cls: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """A structure hook for an attrs class: attrs itself stops at the first that refuses, and does not say which."""
    structure = converter.gen_structure_attrs_fromdict(cls)

    def hook(value: Any, _cls: Any) -> Any:
        try:
            return structure(value, cls)
        except ClassValidationError as error:
            if any(map(_is_of_a_key, error.exceptions)):
                raise
            with attrs.validators.disabled():
                unvalidated = structure(value, cls)
            if refusals := list(_refusals(unvalidated)):
                raise ClassValidationError(error.message, refusals, cls) from error
            raise

    return hook


def _is_of_a_key(error: BaseException) -> bool:
    """A value that is of another type, or a key too many: else the class itself was not made."""
    located = any(isinstance(each, AttributeValidationNote) for each in getattr(error, "__notes__", ()))
    return located or isinstance(error, ForbiddenExtraKeysError)


def _refusals(instance: Any) -> Iterator[Exception]:
    for field in attrs.fields(type(instance)):
        try:
            if field.validator is not None:
                field.validator(instance, field, getattr(instance, field.name))
        except (ValueError, TypeError, SpecError) as error:
            error.add_note(AttributeValidationNote(f"{field.name} is refused", field.name, field.type))
            yield error
