"""How faults show values, and what they say of keys that nothing reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from llmb.values.errors import Fault
from llmb.values.nearest import nearest_name

NOT_A_KEY = "is not a key here"
MISSING = "is missing"
LONGEST_TEXT = 500
"""Characters of an exception's message in an error of llmb."""


def unknown_key(key: str, name: str, known: Iterable[str]) -> Fault:
    """The fault of a key that nothing reads (``name`` is its last part), with the nearest of those that are read."""
    known = list(known)
    expected = f"one of {', '.join(known)}" if known else "no key here"
    return Fault(message=NOT_A_KEY, key=key, expected=expected, nearest=nearest_name(name, known))


def counted(number: int, thing: str) -> str:
    """Such as: 1 GPU, 8 GPUs."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def shown(value: Any) -> str:
    """A value as TOML writes it, for a message: cut short, and of a table only that it is one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"[:60]
    # JSON escapes what TOML does
    return json.dumps(value, ensure_ascii=False)[:60] if isinstance(value, str) else str(value)


def exception_text(error: BaseException) -> str:
    """Return an exception of other code in one line: its class, its message and its notes."""
    of_attrs = any(isinstance(each, attrs.Attribute) for each in error.args)  # behind the message of a validator
    try:
        text = " ".join(map(str, (error.args[0] if of_attrs else error, *getattr(error, "__notes__", ()))))
    except Exception:  # noqa: BLE001  # the class may be a plugin's own
        text = "its message cannot be read"
    text = " ".join(text.split())
    shortened = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    return f"{type(error).__name__}: {shortened}" if shortened else type(error).__name__
