"""Read a workload spec: the file, the ``--set`` overrides, the named target. Nothing is interpreted here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from llmb.paths import config_folder
from llmb.values.errors import Fault, SpecError

FROM_SET = "--set"


@attrs.frozen
class Document:
    """The spec's tables, and which file (or ``--set``) a key came from where that is not the spec itself."""

    file: str
    tables: dict[str, Any]
    origins: dict[str, str] = attrs.field(factory=dict)

    def file_of(self, key: str) -> str:
        """Where this dotted key was written."""
        while key:
            if key in self.origins:
                return self.origins[key]
            key = key.rpartition(".")[0]
        return self.file


def read_document(path: Path, overrides: Iterable[str] = (), target: str | None = None) -> Document:
    """The spec with its overrides and its target's defaults. Raises SpecError for what cannot be read."""
    document = Document(str(path), read_toml(path))
    for override in overrides:
        _apply_override(document, override)
    if target is not None:
        _merge(document.tables, {"target": {"name": target}})
        document.origins["target.name"] = "--target"
    _apply_named_target(document)
    return document


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as tables. Raises SpecError that names the file and says why it cannot be used."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file") from None
    except IsADirectoryError:
        raise _unreadable(path, "is a directory", "a TOML file") from None
    except PermissionError:
        raise _unreadable(path, "may not be read by this user") from None
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"is not UTF-8 (byte {error.start})", "a TOML file in UTF-8") from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None
    if not text.strip():
        raise _unreadable(path, "is empty", "at least a [workload] and a [target] table")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, f"is not valid TOML: {error}") from None


def _unreadable(path: Path, message: str, expected: str | None = None) -> SpecError:
    return SpecError(Fault(message=message, file=str(path), expected=expected))


def _apply_override(document: Document, override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise SpecError(Fault(message=f"{override!r} has no value", file=FROM_SET, expected="key=value"))
    tables = _parse_override(key, value)
    _merge(document.tables, tables)
    document.origins.update(dict.fromkeys(_leaves(tables), FROM_SET))


def _parse_override(key: str, value: str) -> dict[str, Any]:
    """``key=value`` as the tables that TOML makes of it; a value that is no TOML is a string."""
    for text in (value, json.dumps(value)):
        try:
            return tomllib.loads(f"{key} = {text}")
        except tomllib.TOMLDecodeError:
            continue
    raise SpecError(Fault(message=f"{key!r} is not a dotted key", file=FROM_SET, expected="table.key=value"))


def _leaves(tables: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in tables.items():
        found += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return found


def _merge(tables: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            _merge(tables[key], value)
        else:
            tables[key] = value


def targets_file() -> Path:
    """Where named targets are kept: ``targets.toml`` in the user's configuration directory."""
    return config_folder() / "targets.toml"


def _apply_named_target(document: Document) -> None:
    """Put the named target's keys below those that the spec itself states."""
    target = document.tables.get("target")
    name = target.get("name") if isinstance(target, dict) else None
    if not isinstance(target, dict) or not isinstance(name, str):
        return
    if "scheduler" in target and not targets_file().exists():
        return  # a record's own spec: the target's keys are all there
    file = targets_file()
    known = read_toml(file) if file.exists() else {}
    if not isinstance(known.get(name), dict):
        if "scheduler" in target:
            return
        raise SpecError(_unknown_target(name, file, known, document))
    for key, value in known[name].items():
        if key not in target:
            target[key] = value
            document.origins[f"target.{key}"] = f"{file}: [{name}]"


def _unknown_target(name: str, file: Path, known: Mapping[str, Any], document: Document) -> Fault:
    import difflib  # only needed for the message

    nearest = difflib.get_close_matches(name, list(known), n=1)
    return Fault(
        message=f"there is no target {name!r} in {file}" + ("" if known else " (the file is not there)"),
        file=document.file_of("target.name"),
        key="target.name",
        expected=f"one of {', '.join(sorted(known))}" if known else f"a table [{name}] with a scheduler in that file",
        nearest=nearest[0] if nearest else None,
    )
