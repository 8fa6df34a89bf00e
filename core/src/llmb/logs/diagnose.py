"""Cause of a failed run: the earliest known signature in its logs, else its last exception."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import attrs

from llmb.logs.exceptions import SEARCHED, LoggedError, find_errors, first_exception
from llmb.logs.files import blocks_of
from llmb.logs.log_tail import as_evidence
from llmb.logs.search import MOST_TOGETHER, TextSearch
from llmb.values.failure import Failure, Signature
from llmb.values.frozen import FrozenMap

OVERLAP: Final = 4096
"""Bytes of a block that are searched again with the next one, so that no signature is lost between two blocks."""

PREFIX: Final = 200
AROUND: Final = 400
"""Bytes of a line that are shown as evidence before and after the beginning of a signature."""

SEE_TRACEBACK: Final = "see the traceback in the log; later errors of other processes follow from this one"

FROM_THE_START: Mapping[Path, int] = FrozenMap()


@attrs.frozen
class _Hit:
    """A signature found in a log, or the line of an exception, and the byte where it begins."""

    path: Path
    offset: int
    signature: Signature


def known_signatures() -> tuple[Signature, ...]:
    """Return the signatures that core ships."""
    tables = sorted(files("llmb.logs").joinpath("signatures").iterdir(), key=lambda file: file.name)
    return tuple(each for file in tables for each in _signatures_in(file))


def preparation_failure(log: str) -> Signature | None:
    """Return the first known cause for which a task fails, such as no route to a server, or None."""
    signatures = _signatures_in(files("llmb.logs").joinpath("preparation.toml"))
    return next((each for each in signatures if each.needle in log), None)


def _signatures_in(file: Traversable) -> Iterator[Signature]:
    return (Signature(**entry) for entry in tomllib.loads(file.read_text())["signatures"])


def known_remedy(message: str, more: Iterable[Signature] = ()) -> str:
    """Return the remedy of the first primary signature in ``message``, or "" if it contains none."""
    signatures = (each for each in (*known_signatures(), *more) if each.primary and each.needle in message)
    return next((each.remedy for each in signatures), "")


def diagnose(
    logs: Iterable[Path], more: Iterable[Signature] = (), starts: Mapping[Path, int] = FROM_THE_START
) -> Failure | None:
    """Return the cause that the logs of one run contain, or None. Missing and empty logs are skipped.

    A primary signature is the cause, wherever it is. A secondary signature means that something else failed before:
    the cause is then the last exception before the signature, or at the end of a log without a signature. If that
    exception only reports another process, it becomes the evidence of the secondary signature. ``more`` are
    signatures besides those of core. ``starts`` is the first byte of a log that counts.
    """
    paths = _not_empty(logs)
    hits = _hits(paths, [*known_signatures(), *more], starts)
    if not hits:
        return None
    best = min(hits, key=lambda hit: (not hit.signature.primary, hit.offset))
    if best.signature.primary:
        return _failure(best.signature, best.path, best.offset)
    errors = _errors(paths, starts, {hit.path: hit.offset for hit in hits})
    if exception := _own_exception(errors):
        return exception
    reported = next(((path, found[-1].offset) for path, found in errors if found), (best.path, best.offset))
    return _failure(best.signature, *reported)


def last_exception(logs: Iterable[Path], starts: Mapping[Path, int] = FROM_THE_START) -> Failure | None:
    """Return the exception that ended a rank, unless it only reports another process; ``starts`` as for `diagnose`."""
    return _own_exception(_errors(_not_empty(logs), starts, {}), ended=True)


def _not_empty(logs: Iterable[Path]) -> list[Path]:
    return [path for path in logs if os.path.isfile(path) and path.stat().st_size]


def _own_exception(logs: Iterable[tuple[Path, list[LoggedError]]], *, ended: bool = False) -> Failure | None:
    for path, errors in logs:
        if error := first_exception(errors, ended=ended):
            line, text = _line_at(path, error.offset)
            cause = f"a process failed with {error.exception}"
            return Failure(cause=cause, evidence=text, line=line, remedy=SEE_TRACEBACK)
    return None


def _failure(signature: Signature, path: Path, offset: int) -> Failure:
    line, text = _line_at(path, offset)
    cause = signature.cause_in(text[max(0, text.find(signature.needle)) :])
    return Failure(cause=cause, evidence=text, line=line, remedy=signature.remedy)


def _hits(paths: Sequence[Path], signatures: Iterable[Signature], starts: Mapping[Path, int]) -> list[_Hit]:
    """Return the first hit in each log. Primary and secondary signatures may overlap, so each kind has a search."""
    by_text = {signature.needle.encode(): signature for signature in signatures if signature.needle}
    primary = TextSearch((text for text, signature in by_text.items() if signature.primary), MOST_TOGETHER)
    secondary = TextSearch((text for text, signature in by_text.items() if not signature.primary), MOST_TOGETHER)
    found = ((path, _first_text(path, primary, secondary, starts.get(path, 0))) for path in paths)
    return [_Hit(path, match[0], by_text[match[1]]) for path, match in found if match]


def _first_text(path: Path, primary: TextSearch, secondary: TextSearch, start: int) -> tuple[int, bytes] | None:
    """Return the earliest primary text in a log, else the earliest secondary one, with the byte where it begins."""
    kept, earliest = b"", None
    for block in blocks_of(path, start):
        data, begin = kept + block, start - len(kept)
        if match := primary.find_first(data):
            return begin + match[0], match[1]
        if earliest is None and (match := secondary.find_first(data)):
            earliest = begin + match[0], match[1]
        start, kept = start + len(block), data[-OVERLAP:]
    return earliest


def _errors(
    paths: Iterable[Path], starts: Mapping[Path, int], hits: Mapping[Path, int]
) -> list[tuple[Path, list[LoggedError]]]:
    """Return the errors before the hit in each log, or at the end of a log without a hit."""
    found = []
    for path in paths:
        end = hits.get(path, path.stat().st_size)
        start = min(end, max(starts.get(path, 0), end - SEARCHED))
        with path.open("rb") as file:
            file.seek(start)
            tail = file.read(end - start)
        if path in hits:
            tail = tail[: tail.rfind(b"\n") + 1]
        found.append((path, [attrs.evolve(error, offset=start + error.offset) for error in find_errors(tail)]))
    return found


def _line_at(path: Path, offset: int) -> tuple[int, str]:
    """Return number (from 1) and text of the line at ``offset``. A long line is cut before and after that byte."""
    number = 1
    with path.open("rb") as file:
        while (left := offset - file.tell()) > 0:
            number += file.read(min(1 << 20, left)).count(b"\n")
        file.seek(max(0, offset - PREFIX))
        before, after = file.read(min(offset, PREFIX)), file.read(AROUND)
    while after.startswith(b"\n"):  # the signature begins with the end of the line before
        number, before, after = number + 1, b"", after[1:]
    prefix = re.split(rb"[\r\n]", before)[-1]
    if len(prefix) == len(before) == PREFIX:  # the line begins further ahead
        prefix = b""
    return number, as_evidence(prefix + re.split(rb"[\r\n]", after)[0])
