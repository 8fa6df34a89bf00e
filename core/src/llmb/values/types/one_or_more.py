"""The type of a key that is one value or a list of values."""

from typing import Any

from llmb.values.types.check_types import value_type
from llmb.values.types.value_type import InvalidValueError, ValueType


def one_or_more(kind: Any, *, distinct: bool = False) -> ValueType:
    """Return the type of one value or a list of values, which is a tuple in any case."""
    item = value_type(kind)

    def convert(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        try:
            converted = tuple(map(item.convert, values))
        except InvalidValueError:
            raise InvalidValueError.of(value, f"{item.expected}, or a list of such values") from None
        if not converted:
            raise InvalidValueError.of(value, "a list with at least one item")
        if distinct and len(set(converted)) != len(converted):
            raise InvalidValueError.of(value, "each value once")
        return converted

    schema = {"anyOf": [item.schema, {"type": "array", "items": item.schema, "minItems": 1}]}
    return ValueType(f"{item.expected}, or a list of such values", convert, schema=schema)
