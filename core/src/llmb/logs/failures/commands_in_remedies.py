"""Commands in remedies: searches of logs, and the names of the failed run, so that users can paste the commands."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from llmb.values.failure import Failure

FIRST_ERRORS: Final = (
    "the 20 earliest errors (those without a time are last, in the order of the logs): "
    "`grep -rniE -m 3 'error|exception|fatal|killed' LOGS"
    r" | sed -E 's/.*([0-9]{2}(:[0-9]{2}){2}[.,0-9]*)/\1 &/;t;s/^/no-time /'"
    " | sort -k1,1 -k2V | cut -c -300 | head -n 20`"
)
"""The text that replaces ``{first_errors}`` in a remedy. It prints one screen, also for thousands of ranks."""

LAST_MESSAGES: Final = (
    "the last messages of all ranks, those that the fewest ranks print first: "
    "`find LOGS -type f -exec tail -qn 50 {} + | awk "
    """'{kind = $0; gsub(/[0-9]+/, "#", kind)} !count[kind]++ {line[++n] = $0; of[n] = kind}"""
    """ END {for (i = 1; i <= n; i++) print count[of[i]], line[i]}'"""
    " | sort -sn | cut -c -300 | head -n 30`"
)
"""The text that replaces ``{last_messages}``. Messages that differ only in numbers are printed once, with a count."""

SEE_TRACEBACK: Final = (
    "read the traceback of the first log that has one: `find LOGS -type f -print0 | sort -zV"
    " | xargs -0 grep -Hn -m 1 -A 40 'Traceback (most' 2>/dev/null | cut -c -300 | head -n 41`"
)

SEE_TRACEBACK_OF_ONE_LOG: Final = "read its traceback: `grep -rn -m 1 -A 40 'Traceback (most' LOGS | cut -c -300`"

COMMAND = re.compile(r"`[^`]+`")
NAME = re.compile(
    r"(?<=[ =])(?:SPEC|RUN|ADDRESS|NODE|PATH|WORKDIR|LOGS|FRAMEWORK|LONGER|SHORTER|HOST|PORT)\b"
    r"|(?<=[ ])IMAGE\b"  # not in options of container runtimes, which write an address differently
    r"|(?<=[ /])REGISTRY\b(?!\#)"
)
"""A name of the run in capitals in a command, such as ``SPEC`` in ``llmb run SPEC``."""

PATH = re.compile(
    r"""(?P<quote>['"])(?P<quoted>/[\w.@+=/-]+)(?P=quote)|(?<![^\s:=(])(?P<bare>/[\w.@+=/-]+)(?![^\s:,)])"""
)
HOST = re.compile(r"\w[\w.-]*")
"""Paths and hosts of a log, which other programs may have written, have no character that a shell interprets."""

_PEER = re.compile(r" \((?P<host>\w[\w.-]*)(?:(?:, |:)(?P<port>\d{1,5}))?\)$")
"""Another process at the end of a cause, with its port if it is known."""

NAMED_LOGS = 4
"""The most logs that a command of a remedy names. For more logs, the command names their folders."""

PIPES = ("/dev/stdin", "/dev/fd/", "/proc/")
"""Beginnings of the paths of logs that only this process can read."""


def with_commands(remedy: str) -> str:
    """Return the remedy with commands instead of ``{first_errors}`` and ``{last_messages}``."""
    return remedy.replace("{first_errors}", FIRST_ERRORS).replace("{last_messages}", LAST_MESSAGES)


def fill_commands(failure: Failure, words: Mapping[str, str]) -> Failure:
    """Return the failure with names in the commands of its remedy. Unknown names stay in capitals.

    ``words`` has the names that the caller knows, quoted for a shell. The node and the path come from the failure. The
    host and the port are those of another process, at the end of the cause.
    """
    host = failure.host if failure.host and HOST.fullmatch(failure.host) else ""
    peer = _PEER.search(failure.cause)
    known = {
        "NODE": host,
        "PATH": _only_path(failure.cause) or _only_path(failure.evidence),
        "HOST": peer["host"] if peer else "",
        "PORT": peer["port"] if peer else "",
        **words,
    }

    def fill(command: re.Match[str]) -> str:
        return NAME.sub(lambda name: known.get(name[0]) or name[0], command[0])

    return attrs.evolve(failure, remedy=COMMAND.sub(fill, failure.remedy))


def _only_path(text: str) -> str:
    """Return the path in a text, or its only path in quotes, or "" if it has none or several."""
    found = [*PATH.finditer(text)]
    paths = {path["quoted"] for path in found if path["quoted"]} or {path["bare"] for path in found}
    return paths.pop() if len(paths) == 1 else ""


def shorten_traceback_command(failure: Failure) -> Failure:
    """Return the failure with a plain search in one log instead of the search for the first of several logs."""
    return attrs.evolve(failure, remedy=failure.remedy.replace(SEE_TRACEBACK, SEE_TRACEBACK_OF_ONE_LOG))


def names_of_logs(framework: str, plain: Mapping[Path, Path]) -> Mapping[str, str]:
    """Return the names for the commands of a remedy, as words of a shell.

    Such commands can search neither packed logs nor pipes.
    """
    if any(path != text or str(path).startswith(PIPES) for path, text in plain.items()):
        return {"FRAMEWORK": shlex.quote(framework)}
    logs = plain if len(plain) <= NAMED_LOGS else _folders_of(plain)
    names = (f"./{log}" if str(log).startswith("-") else str(log) for log in logs)
    return {"FRAMEWORK": shlex.quote(framework), "LOGS": shlex.join(sorted(names))}


def _folders_of(logs: Iterable[Path]) -> set[Path]:
    """Return the folders of the logs, or if they are many, the folder that contains all of them."""
    folders = {log.parent for log in logs}
    common = Path(os.path.commonpath([folder.absolute() for folder in folders]))
    return folders if len(folders) <= NAMED_LOGS or common == Path("/") else {common}
