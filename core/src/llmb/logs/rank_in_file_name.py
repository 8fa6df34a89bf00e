"""The rank or the host that the name or the folder of a log names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from llmb.logs.attempt_folders import ranks_of_folders
from llmb.logs.processes import UNKNOWN_PROCESS, Process

_NUMBER = re.compile(r"(\d+)")
_OF_RANKS = re.compile(r"(?:^|[^a-z])(?:rank|process|proc|worker|task|log|out|stdout|stderr|err)$", re.IGNORECASE)
"""Words before a number in the name of a log that make it the number of a rank, not a part of a host name."""

_GPU = re.compile(r"(?:^|[^a-z])gpu$", re.IGNORECASE)
"""The word before the number of a GPU, or the name of a host without its number."""

_PREFIX = re.compile(r"^(?:(?:logs?|out|output|stdout|stderr|err|train)-|(?:[A-Za-z]+-)?\d{3,}-(?:\d+-)*)+")
"""Words before the name of a host that are not part of it, and the number of a job or a date: ``job-1234-``."""

_ADDRESS = re.compile(r"(?:^|[^A-Za-z0-9])(ip(?:-\d{1,3}){4})$")
"""A host that is named by its address, as in the clouds of AWS."""


def processes_of_logs(paths: Iterable[Path]) -> dict[Path, Process]:
    """Return the process of each log, if its name has a rank or if the names with numbers differ in one number only.

    The folder of a process, below that of an attempt, also has the number of its rank.
    """
    paths = [*paths]
    names = {path: _NUMBER.split(path.name) for path in paths}
    numbered = [parts for parts in names.values() if len(parts) > 1]  # others are logs of the scheduler
    index = _differing_number(numbered)
    is_gpu_number = index is not None and _are_gpus([parts[index - 1 : index + 1] for parts in numbered])
    return {
        path: _process_of_name(parts, index if len(parts) > 1 else None, is_gpu_number=is_gpu_number)
        for path, parts in names.items()
    } | {path: Process(rank) for path, rank in ranks_of_folders(paths).items()}


def _differing_number(names: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the only number in which names differ, or None. Each name is split into text and numbers."""
    if len(set(map(len, names))) != 1:
        return None
    differing = [index for index, parts in enumerate(zip(*names, strict=True)) if len(set(parts)) > 1]
    is_number = len(differing) == 1 and differing[0] % 2 == 1
    return differing[0] if is_number else None


def _are_gpus(names: Sequence[Sequence[str]]) -> bool:
    """Check whether texts with a number name the GPUs of a node: gpu0, gpu1, and so on. Hosts are gpu01 or gpu1."""
    numbers = [number for text, number in names if _GPU.search(text.rstrip("-_."))]
    return len(numbers) == len(names) and "0" in numbers and all(str(int(number)) == number for number in numbers)


def _process_of_name(parts: Sequence[str], index: int | None, *, is_gpu_number: bool) -> Process:
    """Return the process of a name, split into text and numbers, of which one may number the logs.

    ``is_gpu_number`` is True if the number at ``index`` is that of a GPU.
    """
    for number in range(1, len(parts), 2):
        word = re.sub(r"[-_.]?$", "", parts[number - 1])
        if re.search(r"(?:^|[^a-z])rank$", word, re.IGNORECASE):
            return Process(int(parts[number]))
    if index is None:
        return UNKNOWN_PROCESS
    if address := _ADDRESS.search("".join(parts[: index + 1])):
        return Process(host=address[1])
    before = re.split(r"[^A-Za-z0-9-]", parts[index - 1])[-1]
    words = _PREFIX.sub("", before)
    if is_gpu_number or not re.search(r"[A-Za-z]", words) or _OF_RANKS.search(words.rstrip("-")):
        return Process(int(parts[index]))
    name = re.split(r"[^A-Za-z0-9-]", "".join(parts[:index]))[-1]  # may have other numbers
    return Process(host=_PREFIX.sub("", name) + parts[index])
