"""The user's SSH configuration: ``~/.ssh/config`` and the machine's file, with the files that they include."""

import glob
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from paramiko import ConfigParseError, SSHConfig

from llmb.files import file_exists
from llmb.hosts.ssh.match_and_tokens import OpenSSHConfig
from llmb.values.errors import TargetError

DEPTH = 16  # of nested includes, as in OpenSSH
INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.*)", re.IGNORECASE)
PART = re.compile(r"(\d+)([smhdw]?)", re.IGNORECASE)
TIME = re.compile(f"({PART.pattern})+", re.IGNORECASE)
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SECTION = re.compile(r"\s*(host|match)(?:\s*=\s*|\s+)(.*)", re.IGNORECASE)
COMMAND = re.compile(r"\s*(?:proxy|local|remote|knownhosts)command\b", re.IGNORECASE)
COMMENT = re.compile(r'((?:"[^"]*"|[^"#]|(?<=\S)#)*)(?<=\s)#.*')


def read_ssh_config() -> SSHConfig:
    """Read the files of the user and of the machine; the first value of a key wins, as in OpenSSH.

    Raise TargetError if a file cannot be read or parsed.
    """
    config = OpenSSHConfig()
    for file in (Path(os.path.expanduser("~/.ssh/config")), Path("/etc/ssh/ssh_config")):
        try:
            if not file_exists(file):
                continue
            config.parse(_lines(file, file.parent, DEPTH))
        except (ConfigParseError, ValueError) as error:
            raise TargetError(f"{file}: invalid SSH configuration: {error}") from error
        except OSError as error:
            raise TargetError(f"cannot read {error.filename}: {error.strerror}") from error
    return config


def seconds(time: str) -> int:
    """Parse a time of the SSH configuration, such as ``30`` or ``1m30``, into seconds. Return 0 for "none".

    Raise ValueError if the time is invalid.
    """
    if time.lower() == "none":
        return 0
    if not TIME.fullmatch(time):
        raise ValueError(f"invalid time {time!r}; expected a time such as 30 or 1m")
    return sum(int(number) * UNITS_S[unit.lower()] for number, unit in PART.findall(time))


def _lines(file: Path, base: Path, depth: int, outer: str = "") -> Iterator[str]:
    """Yield the lines of a file with each include replaced by the lines of the included files.

    paramiko does not support Include. ``outer`` has the criteria of the sections that include the file: they also apply
    to the sections in it. After an include, the line that opened the enclosing section is repeated.
    """
    section, criteria = f"Match {outer}" if outer else "Host *", outer
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in map(_without_comment, lines):
            if opened := SECTION.match(line):
                criteria = f"{outer} {_criteria(opened[1], opened[2])}".strip()
                section = f"Match {criteria}"
                yield section
            elif include := INCLUDE.match(line):
                for included in _included(include[1], base) if depth else ():
                    yield from _lines(included, base, depth - 1, criteria)
                    yield section
            else:
                yield line


def _criteria(keyword: str, values: str) -> str:
    """Return the criteria of a section in the form of Match."""
    if keyword.lower() == "match":
        return values.strip()
    return f"originalhost {shlex.quote(','.join(shlex.split(values)))}"


def _without_comment(line: str) -> str:
    """Remove the comment at the end of a line: it begins with a # at the start of an unquoted word."""
    comment = None if COMMAND.match(line) else COMMENT.match(line)
    return comment[1] if comment else line


def _included(patterns: str, base: Path) -> Iterator[Path]:
    for pattern in shlex.split(patterns, comments=True):
        found = glob.glob(str(base / os.path.expanduser(pattern)))
        yield from (path for each in sorted(found) if (path := Path(each)).is_file())
