"""JSON Schema 2020-12 of the types that `llmb.values.types.check_types` checks."""

import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from llmb.spec.field_texts import FieldText, field_texts
from llmb.values.types.check_types import LISTS, MAPPINGS, encode
from llmb.values.types.scalars import BUILT_IN, ValueType

Schema = dict[str, Any]


def type_schema(kind: Any) -> Schema:
    """Return the schema of the TOML values of an annotated type."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return {}
    if origin is Annotated:
        [*_, found] = [each.schema for each in kind.__metadata__ if isinstance(each, ValueType)] or [{}]
        return dict(found) or type_schema(inner[0])
    if kind in BUILT_IN:
        return dict(BUILT_IN[kind].schema)
    if origin is Literal:
        return {**BUILT_IN[type(inner[0])].schema, "enum": list(inner)}
    if origin in (Union, types.UnionType):
        return any_of(*(type_schema(each) for each in inner if each is not type(None)))
    return _container(origin or kind, inner)


def any_of(*schemas: Schema) -> Schema:
    """Return the schema of values that one of the schemas accepts."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _container(cls: Any, inner: tuple[Any, ...]) -> Schema:
    if cls in LISTS:
        items = [type_schema(each) for each in inner if each is not Ellipsis] or [{}]
        fixed = {"minItems": len(items), "maxItems": len(items)} if cls is tuple and Ellipsis not in inner else {}
        return {"type": "array", "items": any_of(*_distinct(items)), **fixed}
    if cls in MAPPINGS:
        return {"type": "object", "additionalProperties": type_schema(inner[1]) if inner else True}
    return table_schema(cls)


def _distinct(schemas: list[Schema]) -> list[Schema]:
    return [each for index, each in enumerate(schemas) if each not in schemas[:index]]


def table_schema(cls: Any) -> Schema:
    """Return the schema of a table with the fields of an attrs class, which accepts no other key."""
    hints = get_type_hints(cls, include_extras=True)
    texts = field_texts(cls)
    fields = [field for field in attrs.fields(cls) if field.init]
    properties = {
        field.name: {
            **type_schema(hints.get(field.name, Any)),
            **_annotations(texts.get(field.name, FieldText()), field.default),
        }
        for field in fields
    }
    return closed_table(properties, [field.name for field in fields if field.default is attrs.NOTHING])


def closed_table(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Return the schema of a table with these keys and no others."""
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _annotations(text: FieldText, default: Any) -> Schema:
    """Return the description, the default and the example of a key. A factory is no default: its value may change.

    Editors show a description as Markdown, which writes code between single backquotes.
    """
    description = f"{text.description} Default: {text.default}." if text.default else text.description
    description = description.replace("``", "`")
    found: Schema = {"description": description.strip()} if description else {}
    if default not in (attrs.NOTHING, None) and not isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        found["default"] = encode(default)
    if text.example:
        found["examples"] = [tomllib.loads(f"value = {text.example}")["value"]]
    return found
