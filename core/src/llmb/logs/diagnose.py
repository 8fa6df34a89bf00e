"""Why a run broke, from its logs: the earliest text that is known to be a cause."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import attrs

from llmb.logs.log_tail import TAIL, final_error, last_error, meaningful, own_exception, shown
from llmb.logs.search import place_of
from llmb.values.failure import Failure, Signature
from llmb.values.frozen import FrozenMap

BLOCK = 4 << 20
OVERLAP = 4096  # so that a text which lies across two blocks is found
AROUND = 400  # bytes of a line that are shown after the text that was found
PREFIX = 200  # bytes before it that are shown, where the line began there
SEE_TRACEBACK = "the log's lines before it tell where; what other processes said later follows from it"

NOTHING_LEFT_OUT: Mapping[Path, int] = FrozenMap()


@attrs.frozen
class _Hit:
    path: Path
    offset: int
    signature: Signature


@attrs.frozen
class FoundCause:
    """Why a run broke, the log that tells it, and from which byte of it on."""

    failure: Failure
    path: Path
    offset: int


@attrs.frozen
class _Error:
    """The line of an exception, and where it begins."""

    path: Path
    offset: int
    line: bytes


def known_signatures() -> tuple[Signature, ...]:
    """The core's own tables of causes."""
    rooms = sorted(files("llmb.logs").joinpath("signatures").iterdir(), key=lambda file: file.name)
    tables = [table for file in rooms for table in tomllib.loads(file.read_text())["signatures"]]
    return tuple(Signature(**table) for table in tables)


def diagnose(
    logs: Iterable[Path], more: Iterable[Signature] = (), starts: Mapping[Path, int] = NOTHING_LEFT_OUT
) -> Failure | None:
    """The cause that the logs of one run tell, or null where they know none. Logs that are not there are left out.

    A primary text is the cause wherever it is. Where there are only secondary ones, which tell that something else
    broke before, that is looked for: an exception that stands before such a text, or that a log ends with. It is the
    cause, unless it tells of other processes itself; then it is shown as evidence.

    What lies before the byte that ``starts`` names of a log does not count.
    """
    found = find_cause(logs, more, starts)
    return found.failure if found else None


def known_remedy(told: str, more: Iterable[Signature] = ()) -> str:
    """What to do where these words, which somebody else chose to tell, hold a known cause; empty where they do not."""
    signatures = (each for each in (*known_signatures(), *more) if each.primary and each.needle in told)
    return next((each.remedy for each in signatures), "")


def find_cause(
    logs: Iterable[Path], more: Iterable[Signature] = (), starts: Mapping[Path, int] = NOTHING_LEFT_OUT
) -> FoundCause | None:
    """As `diagnose`, and where it is told."""
    paths = [path for path in logs if path.is_file() and path.stat().st_size]
    hits = _hits(paths, [*known_signatures(), *more], starts)
    if not hits:
        return None
    best = min(hits, key=lambda hit: (not hit.signature.primary, hit.offset))
    if not best.signature.primary and (errors := [*_errors(paths, starts, {hit.path: hit.offset for hit in hits})]):
        return _behind(best.signature, errors)
    return _found(best.signature.cause, best.signature.remedy, best.path, best.offset)


def last_exception(logs: Iterable[Path], starts: Mapping[Path, int] = NOTHING_LEFT_OUT) -> FoundCause | None:
    """The exception that a log ends with, and that no other process brought about: a cause where no text is known.

    ``starts`` is as for `diagnose`.
    """
    paths = [path for path in logs if path.is_file() and path.stat().st_size]
    for error in _errors(paths, starts, {}, final_error):
        if name := own_exception(error.line):
            return _found(f"a process failed with {name}", SEE_TRACEBACK, error.path, error.offset)
    return None


def _behind(secondary: Signature, errors: Sequence[_Error]) -> FoundCause:
    """The first exception that no other process brought about; where there is none, what the secondary text tells."""
    for error in errors:
        if name := own_exception(error.line):
            return _found(f"a process failed with {name}", SEE_TRACEBACK, error.path, error.offset)
    return _found(secondary.cause, secondary.remedy, errors[0].path, errors[0].offset)


def _found(cause: str, remedy: str, path: Path, offset: int) -> FoundCause:
    line, text = _line_at(path, offset)
    return FoundCause(Failure(cause=cause, evidence=text, line=line, remedy=remedy), path, offset)


def _hits(paths: Sequence[Path], signatures: Sequence[Signature], starts: Mapping[Path, int]) -> list[_Hit]:
    by_needle = {signature.needle.encode(): signature for signature in signatures if signature.needle}
    return [hit for path in paths if (hit := _first_hit(path, by_needle, starts.get(path, 0)))]


def _first_hit(path: Path, signatures: Mapping[bytes, Signature], start: int) -> _Hit | None:
    """The earliest primary text of one log, else its earliest other one."""
    secondary = None
    for offset, block in _blocks(path, start):
        places = ((place_of(needle, block), signature) for needle, signature in signatures.items())
        hits = [_Hit(path, offset + place, signature) for place, signature in places if place >= 0]
        hits.sort(key=lambda hit: (hit.offset, -len(hit.signature.needle)))
        if primary := next((hit for hit in hits if hit.signature.primary), None):
            return primary
        secondary = secondary or next(iter(hits), None)
    return secondary


def _blocks(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        file.seek(start)
        kept = b""
        while new := file.read(BLOCK):
            yield start - len(kept), kept + new
            start += len(new)
            kept = (kept + new)[-OVERLAP:]


def _errors(
    paths: Iterable[Path],
    starts: Mapping[Path, int],
    hits: Mapping[Path, int],
    find: Callable[[Sequence[bytes]], bytes | None] = last_error,
) -> Iterator[_Error]:
    """The last exception before the line that was found in a log, or at the end of a log in which none was."""
    for path in paths:
        end = hits.get(path, path.stat().st_size)
        start = min(end, max(starts.get(path, 0), end - TAIL))
        with path.open("rb") as file:
            file.seek(start)
            tail = file.read(end - start)
        if path in hits:
            tail = tail[: tail.rfind(b"\n") + 1]
        if error := find(meaningful(tail)):
            yield _Error(path, start + tail.rindex(error), error)


def _line_at(path: Path, offset: int) -> tuple[int, str]:
    """The number (from 1) and the text of the line that holds this byte; of a long line the part from there on."""
    number = 1
    with path.open("rb") as file:
        while (left := offset - file.tell()) > 0:
            number += file.read(min(BLOCK, left)).count(b"\n")
        file.seek(max(0, offset - PREFIX))
        before, after = file.read(min(offset, PREFIX)), file.read(AROUND)
    while after.startswith(b"\n"):  # a text that begins with the end of the line before
        number, before, after = number + 1, b"", after[1:]
    prefix = re.split(rb"[\r\n]", before)[-1]
    if len(prefix) == len(before) == PREFIX:  # the line began further ahead
        prefix = b""
    return number, shown(prefix + re.split(rb"[\r\n]", after)[0])
