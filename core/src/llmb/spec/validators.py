"""The validators of attrs classes, each run under the key of its own field, and all of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress
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
            wrong = {name: each for each in error.exceptions for name in _keys_of(each)}
            if not (refusals := _refused(value, wrong, structure, cls)):
                raise
            raise ClassValidationError(error.message, [*dict.fromkeys(wrong.values()), *refusals], cls) from error

    return hook


def _keys_of(error: BaseException) -> Iterator[str]:
    """Those whose values are of another type, or that are too many; none where the class itself was not made."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            yield note.name
    if isinstance(error, ForbiddenExtraKeysError):
        yield from error.extra_fields


def _refused(table: Any, wrong: Container[str], structure: Callable[[Any, Any], Any], cls: Any) -> list[Exception]:
    """What the validators say of the table without its wrong keys; nothing where it cannot do without one."""
    with attrs.validators.disabled(), suppress(ClassValidationError):
        instance = structure({key: value for key, value in table.items() if key not in wrong}, cls)
        return list(_refusals(instance))
    return []


def _refusals(instance: Any) -> Iterator[Exception]:
    for field in attrs.fields(type(instance)):
        try:
            if field.validator is not None:
                field.validator(instance, field, getattr(instance, field.name))
        except (ValueError, TypeError, SpecError) as error:
            error.add_note(AttributeValidationNote(f"{field.name} is refused", field.name, field.type))
            yield error
