"""TOML files of users. All are read here, so that an error has the same words wherever a file is invalid."""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from llmb.values.errors import Fault, LlmbError, SpecError
from llmb.values.texts.nearest_name import nearest_name

MAX_BYTES = 16 << 20
"""The most bytes that are read. A list of 10,000 sweeps has less than one MiB."""


def read_toml(path: Path, error: type[LlmbError] = SpecError) -> dict[str, Any]:
    """Read a TOML file into tables. Raise ``error`` with the file and the reason if the file is unusable."""
    return parse_toml(read_text(path, error), str(path), error)


def read_optional_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file that need not exist. Return no tables without it. Raise SpecError if the file is unusable."""
    try:
        path.lstat()  # a link to a missing file is an error
        if path.is_fifo():
            raise SpecError(Fault(message="the path is a pipe", file=str(path), expected="a TOML file"))
    except FileNotFoundError:
        return {}
    except OSError as cause:
        raise SpecError(_describe_unreadable(path, cause)) from None
    return read_toml(path)


def read_text(path: Path, error: type[LlmbError] = SpecError) -> str:
    """Return the text of a TOML file. Raise ``error`` with the file and the reason if the file cannot be read."""
    try:
        with path.open("rb") as file:  # which may be a pipe, or a device without an end
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise error(Fault(message=f"has more than {MAX_BYTES >> 20} MiB", file=str(path), expected="a TOML file"))
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as cause:
        raise error(_describe_unreadable(path, cause)) from None


def _describe_unreadable(path: Path, cause: OSError | ValueError) -> Fault:
    expected = nearest = None
    match cause:
        case UnicodeDecodeError():
            reason, expected = f"invalid UTF-8 at byte {cause.start}", "a TOML file in UTF-8"
        case ValueError():
            reason = "the path contains a NUL character"
        case FileNotFoundError() if path.is_symlink():
            reason = f"a symbolic link to {path.readlink()}, which does not exist"
        case FileNotFoundError():
            reason, nearest = "no such file", _similar_file(path)
        case IsADirectoryError():
            reason, expected = "the path is a directory", "a TOML file"
        case PermissionError():
            reason = "permission denied"
        case _:
            reason = f"cannot read the file: {cause.strerror}"
    return Fault(message=reason, file=str(path), expected=expected, nearest=nearest)


def _similar_file(path: Path) -> str | None:
    """Return the TOML file of the same folder whose name is most similar, or None."""
    with suppress(OSError, ValueError):
        names = {each.stem: each for each in sorted(path.parent.glob("*.toml"))}
        nearest = nearest_name(path.stem, names)
        return str(names[nearest]) if nearest else None
    return None


def parse_toml(text: str, file: str | None = None, error: type[LlmbError] = SpecError) -> dict[str, Any]:
    """Parse TOML text into tables. Raise ``error`` with the reason if the text is invalid."""
    try:
        tables = tomllib.loads(text)
        str(tables)  # a hexadecimal number of any length can be read, but not shown in an error
    except tomllib.TOMLDecodeError as cause:
        reason = str(cause)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError:
        reason = "a number has thousands of digits"
    else:
        return tables
    raise error(Fault(message=f"invalid TOML: {reason}", file=file))
