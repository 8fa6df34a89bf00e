"""Read a workload spec: the file and the ``--target`` and ``--set`` over it. Nothing is interpreted here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from llmb.values.errors import Fault, SpecError, located
from llmb.values.frozen import FrozenMap
from llmb.values.workload import SourceMap

FROM_SET = "--set"
FROM_TARGET = "--target"


@attrs.frozen
class Document:
    """The spec's tables, and for keys that came from the command line which option they came from.

    [sweep] is flat: its keys are dotted, however the author wrote them. ``notes`` say what the command line put aside,
    ``faults`` what of it cannot be read.
    """

    file: str | None
    tables: dict[str, Any]
    origins: dict[str, str] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    faults: list[Fault] = attrs.field(factory=list)

    @property
    def source_map(self) -> SourceMap:
        """Where each key was written."""
        return SourceMap(file=self.file, places=FrozenMap({key: (file, key) for key, file in self.origins.items()}))


def read_document(
    tables: Mapping[str, Any], *, file: str | None = None, overrides: Iterable[str] = (), target: str | None = None
) -> Document:
    """Return the tables of a spec with the overrides and the target of the command line applied.

    Raises SpecError if there are no tables, or if a key is not a string.
    """
    if not tables:
        expected = "at least a [workload] and a [target] table"
        raise SpecError(Fault(message="the spec is empty", file=file, expected=expected))
    document = Document(file, _flat_sweep(_copy(tables)))
    if target is not None:
        _name_target(document, target)
    for override in overrides:
        try:
            _apply_override(document, override)
        except SpecError as error:
            document.faults.extend(error.faults)
    return document


def _copy(value: Any) -> Any:
    """Return a copy in the types that TOML is read into: dict with string keys, and list."""
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise SpecError(Fault(message=f"invalid key {wrong[0]!r}", expected="a string"))
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text into tables. Raises SpecError with the reason if the text is invalid."""
    try:
        return _tables(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"is not TOML: {error}") from None
    except RecursionError:
        raise SpecError("is nested too deeply") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file into tables. Raises SpecError with the file and the reason if the file is unusable."""
    try:
        return parse_toml(path.read_bytes().decode("utf-8-sig"))
    except SpecError as error:
        raise SpecError(*located(error.faults, str(path))) from None
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file") from None
    except IsADirectoryError:
        raise _unreadable(path, "is a directory", "a TOML file") from None
    except PermissionError:
        raise _unreadable(path, "may not be read by this user") from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"is not UTF-8 (byte {error.start})", "a TOML file in UTF-8") from None


def _tables(text: str) -> dict[str, Any]:
    """TOML as tables. Raises TOMLDecodeError, also for numbers that Python reads or writes in no text."""
    try:
        tables = tomllib.loads(text)
        str(tables)  # a number in hexadecimals is read however long, and could be in no fault
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise tomllib.TOMLDecodeError("a number has thousands of digits") from None
    return tables


def _unreadable(path: Path, message: str, expected: str | None = None) -> SpecError:
    return SpecError(Fault(message=message, file=str(path), expected=expected))


def _name_target(document: Document, name: str) -> None:
    """Put the target of ``--target`` into the spec.

    A [target] with a scheduler of its own is another place, and gives way; one without holds keys for whichever
    target is named, and they stay.
    """
    table = document.tables.get("target")
    written = table if isinstance(table, dict) else {}
    if "scheduler" in written:
        document.notes.append(
            f"--target {name} takes the place of the spec's [target], which does not count ({', '.join(written)})"
        )
        written = {}
    document.tables["target"] = {**written, "name": name}
    document.origins["target.name"] = FROM_TARGET


def _apply_override(document: Document, override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        lacks = "key" if equals else "value"
        raise SpecError(Fault(message=f"{override!r} has no {lacks}", file=FROM_SET, expected="key=value"))
    tables = _flat_sweep(_nested(key.strip(), _parse_value(value)))
    document.origins.update(dict.fromkeys(_merge(document.tables, tables), FROM_SET))


def _nested(key: str, value: Any) -> dict[str, Any]:
    """The tables of a dotted key with this value; TOML itself says where its parts are, since they may be quoted."""
    try:
        tables = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        tables = {}
    table = tables
    while len(table) == 1:
        [(part, below)] = table.items()
        if not isinstance(below, dict):
            table[part] = value
            return tables
        table = below
    raise SpecError(Fault(message=f"{key!r} is not a dotted key", file=FROM_SET, expected="table.key=value"))


def _parse_value(text: str) -> Any:
    """A value in TOML, else the string as it stands. In a list, so that neither a comment nor a second line passes."""
    try:
        tables = _tables(f"value = [{text}]")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return tables["value"][0] if len(tables) == 1 and len(tables["value"]) == 1 else text


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All keys that hold no table, dotted."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _flat_sweep(tables: dict[str, Any]) -> dict[str, Any]:
    """Quoted and bare dotted keys of [sweep] mean the same."""
    sweep = tables.get("sweep")
    return {**tables, "sweep": dict(flat(sweep))} if isinstance(sweep, dict) else tables


def _merge(tables: dict[str, Any], over: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Put ``over`` into the tables; the keys, dotted, that now hold what was there."""
    put = []
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            put += _merge(tables[key], value, f"{prefix}{key}.")
        else:
            tables[key] = value
            put.append(prefix + key)
    return put
