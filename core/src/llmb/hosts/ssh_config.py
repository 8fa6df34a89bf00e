"""The user's SSH configuration: ``~/.ssh/config``, then the machine's, with the files that they include."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from paramiko import ConfigParseError, SSHConfig

from llmb.values.errors import TargetError

DEPTH = 16  # of files that include files, as in OpenSSH
INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.*)", re.IGNORECASE)
PART = re.compile(r"(\d+)([smhdw]?)", re.IGNORECASE)
TIME = re.compile(f"({PART.pattern})+", re.IGNORECASE)
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SECTION = re.compile(r"\s*(host|match)(?:\s*=\s*|\s+)", re.IGNORECASE)


def read_ssh_config(machine: Path = Path("/etc/ssh/ssh_config")) -> SSHConfig:
    """Both files together; the first that states a value wins. Raises TargetError for one that cannot be used."""
    config = SSHConfig()
    for file in (Path("~/.ssh/config").expanduser(), machine):
        if not file.exists():
            continue
        try:
            config.parse(_lines(file, file.parent, DEPTH))
        except (ConfigParseError, ValueError) as error:
            raise TargetError(f"{file} is not an SSH configuration: {error}") from error
        except OSError as error:
            raise TargetError(f"{error.filename} cannot be read: {error.strerror}") from error
    return config


def seconds(time: str) -> int:
    """A time as ssh writes it: seconds, or numbers with s, m, h, d or w that are added up, such as ``1m30``.

    0 for "none". Raises ValueError for anything else.
    """
    if time.lower() == "none":
        return 0
    if not TIME.fullmatch(time):
        raise ValueError(f"{time!r} is no time such as 30 or 1m")
    return sum(int(number) * UNITS_S[unit.lower()] for number, unit in PART.findall(time))


def _lines(file: Path, base: Path, depth: int) -> Iterator[str]:
    """The lines of a file; what it includes stands in its place, and the section around it goes on after that."""
    section = "Host *"
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if SECTION.match(line):
                section = line
            if not (include := INCLUDE.match(line)):
                yield line
                continue
            for included in _included(include[1], base) if depth else ():
                yield from _lines(included, base, depth - 1)
            yield section


def _included(patterns: str, base: Path) -> Iterator[Path]:
    for pattern in shlex.split(patterns, comments=True):
        found = glob.glob(str(base / Path(pattern).expanduser()))
        yield from (path for each in sorted(found) if (path := Path(each)).is_file())
