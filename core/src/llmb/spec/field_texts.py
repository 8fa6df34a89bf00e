"""The strings below the fields of attrs classes: descriptions of keys for the JSON Schema and for the documentation.

They are parsed from the source, because Python does not keep them.
"""

import ast
import functools
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module

import attrs

from llmb.values.frozen import FrozenMap

_TEXT = re.compile(r"(.*?)(?: ?Default: (.+?)\.)?(?: ?Example: ``(.+)``)?")


@attrs.frozen
class FieldText:
    """The string below a field: ``DESCRIPTION Default: TEXT. Example: `VALUE```.

    The default is stated if the value itself does not show it, such as the recipe's. The example is a value in TOML.
    """

    description: str = ""
    default: str = ""
    example: str = ""


def field_texts(cls: type) -> Mapping[str, FieldText]:
    """Return the texts of the fields of a class and of its bases, by name. A field without a string is missing."""
    found: dict[str, FieldText] = {}
    for each in reversed(cls.__mro__[:-1]):
        found.update(_texts_of_module(each.__module__).get(each.__qualname__, {}))
    return FrozenMap(found)


@functools.cache
def _texts_of_module(name: str) -> Mapping[str, Mapping[str, FieldText]]:
    """Return the texts of all classes of a module, by the qualified name of the class."""
    try:
        source = inspect.getsource(import_module(name))
    except (OSError, TypeError):  # a plugin without source
        return {}
    return dict(_classes(ast.parse(source), ""))


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, Mapping[str, FieldText]]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            yield f"{prefix}{each.name}", dict(_fields(each))
            yield from _classes(each, f"{prefix}{each.name}.")


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, FieldText]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield field.target.id, _parse(inspect.cleandoc(below.value.value))


def _parse(text: str) -> FieldText:
    found = _TEXT.fullmatch(" ".join(text.split()))
    return FieldText(*(part or "" for part in found.groups())) if found else FieldText()
