"""The JSON Schemas of files: the spec and the targets file for the installed plugins, a recipe, a declared framework.

A schema describes structure alone: tables, keys, types, bounds and names. It accepts errors that need more, such as a
``tp`` that does not divide the GPUs; `llmb validate` reports those.
"""

import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from llmb.plugins.declared.framework_tables import DeclaredFile
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.recipe_files import exact_addresses
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.recipe_tables import RecipeTable
from llmb.spec.field_texts import FieldText, field_texts
from llmb.spec.resolve_run import known_accelerators
from llmb.spec.workload_tables import SWEPT_KEYS, TABLE_TEXTS, TABLES, TargetTable, WorkloadTable
from llmb.values.errors import LlmbError
from llmb.values.types.check_arguments import check_arguments
from llmb.values.types.check_types import LISTS, MAPPINGS, encode
from llmb.values.types.value_type import BUILT_IN, ValueType

Schema = dict[str, Any]
SchemaKind = Literal["spec", "targets file", "recipe", "framework file"]

FILE_ADDRESS = r"\.toml(#[^#]+)?$"
"""A recipe's address that is the path of a declared framework."""

_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY_TABLE: Schema = {"type": "object"}
_SWEEP: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, _ANY_TABLE]},
}
"""Lists under quoted keys with dots, or under keys of tables."""


@check_arguments
def json_schema(kind: SchemaKind = "spec") -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of a workload spec for the installed plugins, or of another file."""
    match kind:
        case "spec":
            file = _spec(PluginRegistry())
        case "targets file":
            file = _targets_file(PluginRegistry())
        case "recipe":
            file = _recipe()
        case "framework file":
            file = _table_schema(DeclaredFile)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"llmb {kind}", **file}


def _spec(registry: PluginRegistry) -> Schema:
    tables = {name: _table_schema(cls) if cls else _STRINGS for name, cls in TABLES.items()}
    tables |= {"workload": _workload(registry), "sweep": _SWEEP, "framework": _ANY_TABLE, "provenance": _ANY_TABLE}
    tables["target"] = _target(_options(registry, "scheduler"))
    described = {name: {"description": TABLE_TEXTS[name], **table} for name, table in tables.items()}
    of_frameworks = [_framework_if(name, options) for name, options in _options(registry, "framework").items()]
    return {**_closed_table(described, ("workload", "target")), "allOf": of_frameworks}


def _workload(registry: PluginRegistry) -> Schema:
    """Return the schema of [workload], with the installed recipes and the known GPU types."""
    table = _table_schema(WorkloadTable)
    keys = table["properties"]
    addresses = sorted({*exact_addresses(registry.installed)})
    keys["recipe"] |= _any_of({"enum": addresses}, {"pattern": FILE_ADDRESS})
    keys["gpu_type"]["enum"] = sorted(known_accelerators(registry))
    for name in SWEPT_KEYS:
        keys[name] = _one_or_list(keys[name])
    return table


def _one_or_list(schema: Schema) -> Schema:
    """Return the schema of a value or a list of values, with the annotations of the value."""
    value = {key: each for key, each in schema.items() if key not in ("description", "default", "examples")}
    rest = {key: each for key, each in schema.items() if key not in value}
    return {**rest, **_any_of(value, {"type": "array", "items": value, "minItems": 1})}


def _target(options: Mapping[str, Schema]) -> Schema:
    """Return the schema of [target]: its keys depend on the scheduler, which a table of the targets file may set."""
    core = _target_keys(options)
    cases = []
    for name, schema in options.items():
        keys = {**core, **schema["properties"]}
        has_name = {"required": ["name"]}  # of a table that may have the required keys
        without, complete = _closed_table(keys), _closed_table(keys, schema.get("required", ()))
        cases.append({"if": _has_scheduler(name), "then": {"if": has_name, "then": without, "else": complete}})
    needed = [{"required": ["scheduler"]}, {"required": ["name"]}]
    return {**_any_scheduler(core, options), "anyOf": needed, "allOf": cases}


def _targets_file(registry: PluginRegistry) -> Schema:
    """Return the schema of the targets file: any names of tables, in which [target] of a spec may add every key."""
    options = _options(registry, "scheduler")
    core = {key: each for key, each in _target_keys(options).items() if key != "name"}
    cases = [
        {"if": _has_scheduler(name), "then": _closed_table({**core, **schema["properties"]})}
        for name, schema in options.items()
    ]
    return {"type": "object", "additionalProperties": {**_any_scheduler(core, options), "allOf": cases}}


def _target_keys(options: Mapping[str, Schema]) -> Schema:
    """Return the keys of a target that do not depend on the scheduler, with the names of the installed ones."""
    keys: Schema = _table_schema(TargetTable)["properties"]
    keys["scheduler"]["enum"] = sorted(options)
    return keys


def _has_scheduler(name: str) -> Schema:
    return {"properties": {"scheduler": {"const": name}}, "required": ["scheduler"]}


def _any_scheduler(core: Schema, options: Mapping[str, Schema]) -> Schema:
    """Return a table that accepts the options of all schedulers."""
    any_key: Schema = {key: True for schema in options.values() for key in schema["properties"]}
    return _closed_table({**any_key, **core})


def _framework_if(name: str, options: Schema) -> Schema:
    """Return the rule that [framework] has the options of this framework if a recipe of the spec is one of its."""
    own = {"type": "string", "pattern": f"^{name}/"}
    recipe = _any_of(own, {"type": "array", "contains": own})
    workload = {"properties": {"recipe": recipe}, "required": ["recipe"]}
    return {
        "if": {"properties": {"workload": workload}, "required": ["workload"]},
        "then": {"properties": {"framework": options}},
    }


def _options(registry: PluginRegistry, kind: Literal["framework", "scheduler"]) -> dict[str, Schema]:
    """Return the schema of the options of each installed plugin. A broken plugin accepts any key."""
    found: dict[str, Schema] = {}
    for name in plugin_names(kind, registry.installed):
        try:
            plugin = registry.framework(name) if kind == "framework" else registry.scheduler(name)
            found[name] = _table_schema(plugin.options)
        except LlmbError:
            found[name] = {"type": "object", "properties": {}}
    return found


def _recipe() -> Schema:
    """Return the schema of a recipe file. If it names shared files, they may have the required keys."""
    table = _table_schema(RecipeTable)
    strings = {"type": "array", "items": {"type": "string"}}
    table["properties"] |= {
        "shared": {"description": "Names of files shared/NAME.toml beside this file, in the same form.", **strings},
        "fixes": {
            "description": "Later releases, each with the tables that it changes.",
            "type": "object",
            "additionalProperties": _ANY_TABLE,
        },
    }
    is_complete = {"not": {"required": ["shared"]}, "additionalProperties": True}  # else tombi warns of every key
    return {**_without_required(table), "if": is_complete, "then": table}


def _without_required(schema: Any) -> Any:
    """Return a schema in which every key may be missing."""
    if isinstance(schema, list):
        return [_without_required(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_required(each) for key, each in schema.items() if key != "required"}


def _type_schema(kind: Any) -> Schema:
    """Return the schema of the TOML values of an annotated type."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return {}
    if origin is Annotated:
        [*_, found] = [each.schema for each in kind.__metadata__ if isinstance(each, ValueType)] or [{}]
        return dict(found) or _type_schema(inner[0])
    if kind in BUILT_IN:
        return dict(BUILT_IN[kind].schema)
    if origin is Literal:
        return {**BUILT_IN[type(inner[0])].schema, "enum": list(inner)}
    if origin in (Union, types.UnionType):
        return _any_of(*(_type_schema(each) for each in inner if each is not type(None)))
    return _container(origin or kind, inner)


def _any_of(*schemas: Schema) -> Schema:
    """Return the schema of values that one of the schemas accepts."""
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _container(cls: Any, inner: tuple[Any, ...]) -> Schema:
    if cls in LISTS:
        items = [_type_schema(each) for each in inner if each is not Ellipsis] or [{}]
        fixed = {"minItems": len(items), "maxItems": len(items)} if cls is tuple and Ellipsis not in inner else {}
        return {"type": "array", "items": _any_of(*_distinct(items)), **fixed}
    if cls in MAPPINGS:
        return {"type": "object", "additionalProperties": _type_schema(inner[1]) if inner else True}
    return _table_schema(cls)


def _distinct(schemas: list[Schema]) -> list[Schema]:
    return [each for index, each in enumerate(schemas) if each not in schemas[:index]]


def _table_schema(cls: Any) -> Schema:
    """Return the schema of a table with the fields of an attrs class, which accepts no other key."""
    hints = get_type_hints(cls, include_extras=True)
    texts = field_texts(cls)
    fields = [field for field in attrs.fields(cls) if field.init]
    properties = {
        field.name: {
            **_type_schema(hints.get(field.name, Any)),
            **_annotations(texts.get(field.name, FieldText()), field.default),
        }
        for field in fields
    }
    return _closed_table(properties, [field.name for field in fields if field.default is attrs.NOTHING])


def _closed_table(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
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
