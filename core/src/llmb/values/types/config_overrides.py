"""Overrides of a framework's configuration, under dotted keys or in tables."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from llmb.values.errors import Fault
from llmb.values.frozen import FrozenMap
from llmb.values.types.check_types import value_type
from llmb.values.types.value_type import InvalidValueError, ValueType

_DOTTED = value_type(Mapping[str, str | int | float | bool])


def _convert(value: Any) -> Any:
    """Return the overrides under dotted keys. Raise InvalidValueError for a key that is written in two ways."""
    if not isinstance(value, Mapping):
        raise InvalidValueError.of(value, _DOTTED.expected)
    settings = list(_settings(value))
    counts = Counter(name for name, _ in settings)
    if twice := [Fault(message="set twice; remove one", key=f".{name}") for name, count in counts.items() if count > 1]:
        raise InvalidValueError(*twice)
    return _DOTTED.convert(FrozenMap(settings))


def _settings(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting with its dotted key. An empty table is a setting too, which is invalid."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{above}{name}.")
        else:
            yield above + name, value


ConfigOverrides = Annotated[
    Mapping[str, str | int | float | bool],
    ValueType(
        _DOTTED.expected,
        _convert,
        schema={"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "object"]}},
    ),
]
"""Overrides of a framework's configuration by dotted key. The key ``trainer.precision`` may also be written as
``precision`` in a table ``trainer``."""
