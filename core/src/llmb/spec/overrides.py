"""Set keys of a spec with ``KEY=VALUE``: the argument ``overrides`` of `llmb.load`, or ``--set``."""

from collections.abc import Iterable, Mapping
from typing import Any

from llmb.spec.spec_tables import Document, flatten_sweep, leaves, with_value
from llmb.values.errors import Fault, SpecError, collect_errors
from llmb.values.secret_names import SECRET_VARIABLE
from llmb.values.texts.error_text import format_value
from llmb.values.texts.printable import SURROGATE
from llmb.values.toml_files import parse_toml

FROM_OVERRIDES = "overrides"
"""The argument of `llmb.load` that errors name. The command line names its option instead."""

_Key = tuple[str, ...]
"""The names of a dotted key."""


def apply_overrides(document: Document, overrides: Iterable[str]) -> None:
    """Set the keys of the overrides. One that is invalid or given twice is added to the document's errors."""
    given: dict[_Key, Any] = {}
    for override in overrides:
        with collect_errors(document.errors):
            tables = _parse_override(override)
            values = dict(leaves(tables))
            _add_values(given, values)
            for names in values:
                _remove_other_spelling(document.tables, names)
            document.origins.update(dict.fromkeys(_merge(document.tables, tables), FROM_OVERRIDES))


def _parse_override(override: str) -> dict[str, Any]:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        missing = "key" if equals else "value"
        raise SpecError(Fault(message=f"{override!r} has no {missing}", file=FROM_OVERRIDES, expected="key=value"))
    if SURROGATE.search(override):
        raise SpecError(Fault(message="not text in UTF-8", file=FROM_OVERRIDES, key=key.strip()))
    return flatten_sweep(_nest(key.strip(), _parse_value(value)))


def _add_values(given: dict[_Key, Any], values: Mapping[_Key, Any]) -> None:
    """Add the values of an override. Raise SpecError if one before it sets one of the keys, or a part of one."""
    errors = []
    for key, value in values.items():
        for other, before in given.items():
            length = min(len(key), len(other))
            if key[:length] == other[:length]:
                errors.append(_contradiction(other, before, key, value))
    if errors:
        raise SpecError(*errors)
    given.update(values)


def _contradiction(key: _Key, value: Any, other: _Key, other_value: Any) -> Fault:
    """Return the error of two overrides. The values of a key that may be a secret are left out."""
    name, other_name = ".".join(key), ".".join(other)
    if name != other_name:
        message = f"contradicts {other_name}; give one of them"
        return Fault(message=message, file=FROM_OVERRIDES, key=name)
    values = "" if any(map(SECRET_VARIABLE.search, key)) else f": {format_value(value)} and {format_value(other_value)}"
    return Fault(message=f"given twice{values}; give it once", file=FROM_OVERRIDES, key=name)


def _nest(key: str, value: Any) -> dict[str, Any]:
    """Return the tables of a dotted key with this value. TOML splits the key, because its parts may be quoted."""
    try:
        [(names, _)] = leaves(parse_toml(f"{key} = 0"))
    except (SpecError, ValueError):
        message = f"{key!r} is not a dotted key"
        raise SpecError(Fault(message=message, file=FROM_OVERRIDES, expected="table.key=value")) from None
    return with_value({}, names, value)


def _parse_value(text: str) -> Any:
    """Parse a value as TOML, else return the text itself. A list around it rejects comments and further lines."""
    try:
        tables = parse_toml(f"value = [{text}]")
    except SpecError:
        return text
    return tables["value"][0] if len(tables) == 1 and len(tables["value"]) == 1 else text


def _remove_other_spelling(tables: dict[str, Any], names: _Key) -> None:
    """Remove a key from the tables if other parts of it are quoted there: ``"a.b"`` and ``a.b`` are the same option."""
    inner: Any = tables
    for name in names:
        inner = inner.get(name) if isinstance(inner, dict) else None
    if inner is None:
        _remove(tables, ".".join(names).split("."))


def _remove(tables: dict[str, Any], parts: list[str]) -> None:
    for length in range(1, len(parts) + 1):
        name, below = ".".join(parts[:length]), parts[length:]
        inner = tables.get(name)
        if below and isinstance(inner, dict):
            _remove(inner, below)
        if not below or inner == {}:
            tables.pop(name, None)


def _merge(tables: dict[str, Any], over: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Put ``over`` into the tables. Return the dotted keys of the new values."""
    changed = []
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            changed += _merge(tables[key], value, f"{prefix}{key}.")
        else:
            tables[key] = value
            changed.append(prefix + key)
    return changed
