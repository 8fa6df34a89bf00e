"""The rank or the host that the name of a log names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from llmb.logs.processes import NOBODY, Process

_NUMBER = re.compile(r"(\d+)")
_OF_RANKS = re.compile(r"(?:^|[^a-z])(?:rank|process|proc|worker|task|log|out|stdout|stderr|err)$", re.IGNORECASE)
"""Words before a number in the name of a log that make it the number of a rank, not a part of a host name."""

_PREFIX = re.compile(r"^(?:logs?|out|output|stdout|stderr|err|train)-")


def processes_of_logs(paths: Iterable[Path]) -> dict[Path, Process]:
    """Return the process of each log, if its name has a rank or if the names with numbers differ in one number only."""
    names = {path: _NUMBER.split(path.name) for path in paths}
    numbered = [parts for parts in names.values() if len(parts) > 1]  # others are logs of the scheduler
    columns = [*zip(*numbered, strict=False)] if len(set(map(len, numbered))) == 1 else []
    differing = [index for index, column in enumerate(columns) if len(set(column)) > 1]
    index = differing[0] if len(differing) == 1 and differing[0] % 2 else None
    return {path: _process_of_name(parts, index if len(parts) > 1 else None) for path, parts in names.items()}


def _process_of_name(parts: Sequence[str], index: int | None) -> Process:
    """Return the process of a name, split into text and numbers, of which one may number the logs."""
    for number in range(1, len(parts), 2):
        word = re.sub(r"[-_.]?$", "", parts[number - 1])
        if re.search(r"(?:^|[^a-z])rank$", word, re.IGNORECASE):
            return Process(int(parts[number]))
    if index is None:
        return NOBODY
    before = _PREFIX.sub("", re.split(r"[^A-Za-z0-9-]", parts[index - 1])[-1])
    if not re.search(r"[A-Za-z]", before) or _OF_RANKS.search(before.rstrip("-")):
        return Process(int(parts[index]))
    return Process(host=before + parts[index])
