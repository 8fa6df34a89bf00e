"""New plugins from templates: complete projects that pass their own tests."""

import json
import os
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from keyword import iskeyword
from pathlib import Path
from typing import Literal, get_args

from llmb.plugins.declared.propose_from_log.propose_line import propose_lines
from llmb.plugins.installed_names import plugin_packages
from llmb.scripts.job_functions import job_functions
from llmb.values.errors import LlmbError
from llmb.values.types.check_arguments import check_arguments

PluginKind = Literal["declared", "framework", "scheduler", "extension", "pack"]
PLUGIN_KINDS: tuple[str, ...] = get_args(PluginKind)
"""The kinds of plugins that have a template."""


@check_arguments
def new_plugin(name: str, kind: PluginKind, into: Path, *, log: Path | None = None) -> tuple[Path, ...]:
    """Write a new plugin from the template of its kind, below the folder ``into``. Return the written files.

    A declared framework is one file, any other kind a folder. The file of a declared framework reads the steps of
    ``log``, if one is given. Raise LlmbError if the name is no identifier or is taken, if the file or folder exists, or
    if the log has no steps.
    """
    if log is not None and kind != "declared":
        raise LlmbError(f"only a declared framework is written from a log, not the kind {kind}")
    words = _placeholders(name, kind)
    _check_name(name, None if kind == "declared" else words["__distribution__"])
    root = into / (f"{name}.toml" if kind == "declared" else words["__distribution__"])
    if os.path.lexists(root):  # also for a name that is too long
        raise LlmbError(f"{root} exists; choose another name, or another folder with --into")
    lines = [] if log is None else _lines_of(log)
    templates = files(__package__)
    sources = dict(_files(templates / kind, ""))
    if kind != "declared":
        sources = dict(_files(templates / "project", "")) | sources  # those of the kind replace the common ones
    written = []
    for path, source in sorted(sources.items(), key=lambda each: each[0].split("/")):
        target = (into if kind == "declared" else root) / _replace(path, words)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            text = _replace(source.read_text(encoding="utf-8"), words)
            target.write_text(_with_lines(text, lines) if lines else text, encoding="utf-8")
        except OSError as error:
            raise LlmbError(f"cannot write {target}: {error.strerror}") from error
        written.append(target)
    return tuple(written)


def _check_name(name: str, distribution: str | None) -> None:
    """Raise LlmbError if a name is no identifier, or if its distribution is one of llmb's own."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise LlmbError(f"invalid name {name!r}; expected small letters, digits and _, such as my_trainer")
    if iskeyword(name):
        raise LlmbError(f"invalid name {name!r}, a keyword of Python; expected another name, such as my_{name}")
    if distribution in plugin_packages().values():
        raise LlmbError(f"invalid name {name!r}: {distribution} is a package of llmb; expected another name")


def _lines_of(log: Path) -> list[str]:
    """Return each `line` of [log] that reads steps of a log."""
    try:
        lines = propose_lines(log.read_bytes())
    except OSError as error:
        raise LlmbError(f"cannot read {log}: {error.strerror}") from error
    if not lines:
        message = "no line has a number that rises, nor a step time; omit --from and write [log] line yourself"
        raise LlmbError(f"{log}: {message}")
    return lines


def _with_lines(text: str, lines: list[str]) -> str:
    """Return the file of a declared framework with another `line`, or a list of them."""
    quoted = [
        f"'{line}'" if '"' in line and "'" not in line else json.dumps(line, ensure_ascii=False) for line in lines
    ]
    value = quoted[0] if len(quoted) == 1 else "".join(["[\n", *(f"    {each},\n" for each in quoted), "]"])
    written = f"line = {value}   # proposed from a log: check the names"
    return re.sub(r"^line = .*$", lambda _: written, text, flags=re.MULTILINE)


def _placeholders(name: str, kind: PluginKind) -> dict[str, str]:
    """Return the texts that replace the placeholders of a template."""
    return {
        "__name__": name,
        "__kind__": kind,
        "__Name__": "".join(word.capitalize() for word in name.split("_")),
        "contract_tests.py": "test_contract.py",  # here, pytest must not collect it
        "__distribution__": f"llmb-{name.replace('_', '-')}",
        "__job_functions__": job_functions(),  # the golden file of a scheduler contains these two
        "__script__": (files(__package__) / "scheduler/src/llmb___name__/script.sh").read_text(encoding="utf-8"),
    }


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a template with their relative paths."""
    for each in folder.iterdir():
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
