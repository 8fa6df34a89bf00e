"""Set keys of a spec with ``--set KEY=VALUE``."""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from llmb.spec.read_toml import Document, flatten_sweep, parse_toml
from llmb.values.errors import Fault, SpecError

FROM_SET = "--set"


def apply_overrides(document: Document, overrides: Iterable[str]) -> None:
    """Set the keys of ``--set``. An invalid one is added to the document's errors."""
    for override in overrides:
        try:
            _apply_override(document, override)
        except SpecError as error:
            document.errors.extend(error.faults)


def _apply_override(document: Document, override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        missing = "key" if equals else "value"
        raise SpecError(Fault(message=f"{override!r} has no {missing}", file=FROM_SET, expected="key=value"))
    tables = flatten_sweep(_nest(key.strip(), _parse_value(value)))
    document.origins.update(dict.fromkeys(_merge(document.tables, tables), FROM_SET))


def _nest(key: str, value: Any) -> dict[str, Any]:
    """Return the tables of a dotted key with this value. TOML splits the key, because its parts may be quoted."""
    try:
        tables = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        tables = {}
    table = tables
    while len(table) == 1:
        [(part, below)] = table.items()
        if not isinstance(below, dict):
            table[part] = value
            return tables
        table = below
    raise SpecError(Fault(message=f"{key!r} is not a dotted key", file=FROM_SET, expected="table.key=value"))


def _parse_value(text: str) -> Any:
    """Parse a value as TOML, else return the text itself. A list around it rejects comments and further lines."""
    try:
        tables = parse_toml(f"value = [{text}]")
    except SpecError:
        return text
    return tables["value"][0] if len(tables) == 1 and len(tables["value"]) == 1 else text


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
