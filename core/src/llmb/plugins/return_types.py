"""Whether a hook's answer is of the type that its specification states, and what it raised instead."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from llmb.values.steps import LogParser


@runtime_checkable
class _Fed(Protocol):
    """What a log parser must have that does not inherit from `LogParser`."""

    def feed(self, block: bytes, source: str = "") -> Any: ...

    def close(self) -> Any: ...


ACCEPTED: Mapping[Any, Any] = {float: (int, float), tuple: Sequence, LogParser: _Fed}
"""What else than the stated type does as well."""


def short(error: BaseException) -> str:
    """An error of a stranger's code in one line, with what was noted on it."""
    notes = getattr(error, "__notes__", ())
    return f"{type(error).__name__}: {' '.join(' '.join((str(error), *notes)).split())}"


def return_type_error(specification: Callable[..., Any], answer: Any) -> str:
    """What is wrong with a hook's answer, in a few words; empty where nothing is.

    The items of sequences and mappings are looked at too; those of other iterables are not, since they may be read only
    once. A hook that is to answer nothing may answer anything.
    """
    due = _return_type(specification)
    if due is type(None) or (wrong := _wrong_part(answer, due)) is None:
        return ""
    if answer is None:
        return "nothing"
    within = "" if wrong is type(answer) else f" with {wrong.__name__} in it"
    return f"{type(answer).__name__}{within}, where {specification.__annotations__['return']} is due"


@functools.cache
def _return_type(specification: Callable[..., Any]) -> Any:
    return get_type_hints(specification)["return"]


def _wrong_part(value: Any, due: Any) -> type | None:
    """The type of the value, or of the first item of it, that is not as due; null where all is."""
    origin, inner = get_origin(due) or due, get_args(due)
    if origin is types.UnionType:
        parts = [_wrong_part(value, each) for each in inner]
        return None if None in parts else parts[0]
    if not isinstance(value, ACCEPTED.get(origin, origin)) or (isinstance(value, str) and origin is not str):
        return type(value)
    items: Iterable[Any] = value.values() if origin is Mapping else value if origin in (tuple, Sequence) else ()
    item_type = inner[1] if origin is Mapping else next(iter(inner), None)
    return next((wrong for each in items if (wrong := _wrong_part(each, item_type)) is not None), None)
