"""The tables of keys in the documents, from the strings below the fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs

import llmb
from llmb.spec.field_texts import FieldText, field_texts
from llmb.spec.workload_tables import TABLES
from llmb.values.types.check_types import encode, value_type

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("spec.md", "local.md", "slurm.md", "maxtext.md", "megatron-bridge.md", "nemo-launcher.md")
PIPE = "\\|"
"""A vertical line in a cell of a table."""

TABLE = re.compile(
    r"(<!-- keys of ([\w./]+), written by tools/write_docs.py -->\n).*?(<!-- end of keys -->)", re.DOTALL
)


def pages() -> dict[Path, str]:
    """Return the text of each page with tables of keys, by path."""
    return {DOCS / name: with_tables((DOCS / name).read_text()) for name in PAGES}


def with_tables(page: str) -> str:
    """Return the text of a page with the tables between its marks."""
    return TABLE.sub(lambda found: f"{found[1]}\n{_table(_keys(found[2]))}\n{found[3]}", page)


def _keys(name: str) -> type:
    """Return the class of a table of the spec, of the options or the settings of a plugin, or of a table in these."""
    kind, _, plugin = name.partition("/")
    if not plugin:
        return TABLES[kind]  # type: ignore[no-any-return]
    plugin, _, field = plugin.partition(".")
    registry = llmb.PluginRegistry()
    if kind == "settings":
        return registry.framework(plugin).settings or object
    options = (registry.framework(plugin) if kind == "framework" else registry.scheduler(plugin)).options
    return get_type_hints(options)[field] if field else options


def _table(cls: type) -> str:
    if any(text.example for text in field_texts(cls).values()):
        lines = ["| key | form | default | example | |", "|---|---|---|---|---|", *_rows(cls)]
    else:
        lines = ["| key | form | default | |", "|---|---|---|---|", *_rows(cls)]
    return "".join(f"{line}\n" for line in lines)


def _rows(cls: type) -> Iterator[str]:
    hints = get_type_hints(cls, include_extras=True)
    texts: Mapping[str, FieldText] = field_texts(cls)
    for field in attrs.fields(cls):
        text = texts[field.name]
        cells = [f"`{field.name}`", _form(hints[field.name]), _default(field, text)]
        cells += [f"`{field.name} = {text.example}`"] if text.example else []
        yield f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} | {text.description} |"
        for nested in () if text.example else get_args(hints[field.name]):
            if attrs.has(nested) and nested.__module__ == cls.__module__:
                name = f"{field.name}.NAME" if get_origin(hints[field.name]) is Mapping else field.name
                yield from (f"| `{name}.{row.removeprefix('| `')}" for row in _rows(nested))


def _form(kind: Any) -> str:
    """Return the expected values as messages describe them, without examples."""
    return re.split(r" such as | \(|, as |, without ", value_type(kind).expected)[0].removesuffix(",")


def _default(field: attrs.Attribute[Any], text: FieldText) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    if text.default or field.default is None or isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return text.default or "none"
    if field.default is False:
        return "false"
    return f"`{_toml(encode(field.default))}`" if field.default else "none"


def _toml(value: Any) -> str:
    """Return a value in one line of TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value)
