"""New plugins from templates: complete projects that pass their own tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from keyword import iskeyword
from pathlib import Path
from typing import Literal, get_args

from llmb.values.errors import LlmbError

PluginKind = Literal["declared", "framework", "extension", "pack"]
PLUGIN_KINDS: tuple[str, ...] = get_args(PluginKind)
"""The kinds of plugins that have a template."""


def new_plugin(name: str, kind: PluginKind, into: Path) -> tuple[Path, ...]:
    """Write a new plugin from the template of its kind, below the folder ``into``. Return the written files.

    A declared framework is one file, any other kind a folder. Raise LlmbError if the name is no identifier, or if the
    file or folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or iskeyword(name):
        raise LlmbError(f"invalid name {name!r}; expected small letters, digits and _, such as my_trainer")
    words = _placeholders(name)
    root = into / (f"{name}.toml" if kind == "declared" else words["__distribution__"])
    if root.exists():
        raise LlmbError(f"{root} exists; choose another name, or another folder with --into")
    template = files(__name__) / kind
    written = []
    for path, source in _files(template, ""):
        target = (into if kind == "declared" else root) / _replace(path, words)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_replace(source.read_text(encoding="utf-8"), words), encoding="utf-8")
        except OSError as error:
            raise LlmbError(f"cannot write {target}: {error.strerror}") from error
        written.append(target)
    return tuple(written)


def _placeholders(name: str) -> dict[str, str]:
    """Return the texts that replace the placeholders of a template."""
    return {
        "__name__": name,
        "__Name__": "".join(word.capitalize() for word in name.split("_")),
        "contract_tests.py": "test_contract.py",  # here, pytest must not collect it
        "__distribution__": f"llmb-{name.replace('_', '-')}",
    }


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a template with their relative paths, sorted."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name == "__pycache__" or each.name.startswith("."):  # caches of tools
            continue
        if each.is_dir():
            yield from _files(each, f"{prefix}{each.name}/")
        else:
            yield f"{prefix}{each.name}", each


def _replace(text: str, words: dict[str, str]) -> str:
    for placeholder, word in words.items():
        text = text.replace(placeholder, word)
    return text
