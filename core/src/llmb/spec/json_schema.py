"""The JSON Schemas of files: the spec for the installed plugins, a recipe, and a declared framework.

A schema describes structure alone: tables, keys, types, bounds and names. It accepts errors that need more, such as a
``tp`` that does not divide the GPUs; `llmb validate` reports those.
"""

from collections.abc import Mapping
from typing import Any, Literal

from llmb.plugins.declared.framework_tables import DeclaredFile
from llmb.plugins.find_plugins import plugin_names
from llmb.plugins.recipe_files import exact_addresses
from llmb.plugins.registry import PluginRegistry
from llmb.recipes.recipe_tables import RecipeTable
from llmb.spec.resolve_run import known_accelerators
from llmb.spec.table_schema import Schema, any_of, closed_table, table_schema
from llmb.spec.workload_tables import SWEPT_KEYS, TABLE_TEXTS, TABLES, TargetTable, WorkloadTable
from llmb.values.errors import LlmbError
from llmb.values.types.check_arguments import check_arguments

SchemaKind = Literal["spec", "recipe", "framework file"]

FILE_ADDRESS = r"\.toml(#[^#]+)?$"
"""A recipe's address that is the path of a declared framework."""

_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY_TABLE: Schema = {"type": "object"}
_SWEEP: Schema = {"type": "object", "additionalProperties": any_of({"type": "array", "minItems": 1}, _ANY_TABLE)}
"""Lists under quoted keys with dots, or under keys of tables."""


@check_arguments
def json_schema(kind: SchemaKind = "spec") -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of a workload spec for the installed plugins, or of another file."""
    file = _spec(PluginRegistry()) if kind == "spec" else _recipe() if kind == "recipe" else table_schema(DeclaredFile)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"llmb {kind}", **file}


def _spec(registry: PluginRegistry) -> Schema:
    tables = {name: table_schema(cls) if cls else _STRINGS for name, cls in TABLES.items()}
    tables |= {"workload": _workload(registry), "sweep": _SWEEP, "framework": _ANY_TABLE, "provenance": _ANY_TABLE}
    tables["target"] = _target(_options(registry, "scheduler"))
    described = {name: {"description": TABLE_TEXTS[name], **table} for name, table in tables.items()}
    of_frameworks = [_framework_if(name, options) for name, options in _options(registry, "framework").items()]
    return {**closed_table(described, ("workload", "target")), "allOf": of_frameworks}


def _workload(registry: PluginRegistry) -> Schema:
    """Return the schema of [workload], with the installed recipes and the known GPU types."""
    table = table_schema(WorkloadTable)
    keys = table["properties"]
    addresses = sorted({*exact_addresses(registry.installed)})
    keys["recipe"] |= any_of({"enum": addresses}, {"pattern": FILE_ADDRESS})
    keys["gpu_type"]["enum"] = sorted(known_accelerators(registry))
    for name in SWEPT_KEYS:
        keys[name] = _one_or_list(keys[name])
    return table


def _one_or_list(schema: Schema) -> Schema:
    """Return the schema of a value or a list of values, with the annotations of the value."""
    value = {key: each for key, each in schema.items() if key not in ("description", "default", "examples")}
    rest = {key: each for key, each in schema.items() if key not in value}
    return {**rest, **any_of(value, {"type": "array", "items": value, "minItems": 1})}


def _target(options: Mapping[str, Schema]) -> Schema:
    """Return the schema of [target]: its keys depend on the scheduler, which a table of the targets file may set."""
    core = table_schema(TargetTable)["properties"]
    core["scheduler"]["enum"] = sorted(options)
    any_key = {key: each for schema in options.values() for key, each in schema["properties"].items()}
    cases = []
    for name, schema in options.items():
        keys = {**core, **schema["properties"]}
        is_chosen = {"properties": {"scheduler": {"const": name}}, "required": ["scheduler"]}
        has_name = {"required": ["name"]}  # of a table that may have the required keys
        without, complete = closed_table(keys), closed_table(keys, schema.get("required", ()))
        cases.append({"if": is_chosen, "then": {"if": has_name, "then": without, "else": complete}})
    needed = [{"required": ["scheduler"]}, {"required": ["name"]}]
    all_keys = {**dict.fromkeys(any_key, True), **core}
    return {**closed_table(all_keys), "anyOf": needed, "allOf": cases}


def _framework_if(name: str, options: Schema) -> Schema:
    """Return the rule that [framework] has the options of this framework if a recipe of the spec is one of its."""
    own = {"type": "string", "pattern": f"^{name}/"}
    recipe = any_of(own, {"type": "array", "contains": own})
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
            found[name] = table_schema(plugin.options)
        except LlmbError:
            found[name] = {"type": "object", "properties": {}}
    return found


def _recipe() -> Schema:
    """Return the schema of a recipe file. If it names shared files, they may have the required keys."""
    table = table_schema(RecipeTable)
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
