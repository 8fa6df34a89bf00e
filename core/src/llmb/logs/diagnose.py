"""Why a run broke, from its logs: the earliest text that is known to be a cause, else the log's last words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

import attrs

from llmb.values.failure import Failure, Signature

BLOCK = 4 << 20
OVERLAP = 4096  # so that a text which lies across two blocks is found
LAST_LINES = 3
LONGEST_LINE = 400
PYTHON_ERROR = re.compile(rb"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit))(?:: .*)?$")


@attrs.frozen
class _Hit:
    primary: bool
    offset: int
    path: Path
    signature: Signature


def known_signatures() -> tuple[Signature, ...]:
    """The core's own table of causes."""
    tables = tomllib.loads(files("llmb.logs").joinpath("signatures.toml").read_text())["signatures"]
    return tuple(Signature(**table) for table in tables)


def diagnose(logs: Iterable[Path], more: Iterable[Signature] = ()) -> Failure | None:
    """The cause that the logs of one run tell, or null where they know none. Logs that are not there are left out."""
    paths = [path for path in logs if path.is_file() and path.stat().st_size]
    signatures = {signature.needle.encode(): signature for signature in (*known_signatures(), *more)}
    hits = [hit for path in paths if (hit := _first_hit(path, signatures))]
    if not hits:
        return None
    best = min(hits, key=lambda hit: (not hit.primary, hit.offset))
    line, text = _line_at(best.path, best.offset)
    return Failure(cause=best.signature.cause, evidence=text, line=line, remedy=best.signature.remedy)


def last_words(logs: Iterable[Path]) -> str:
    """The error that ended a log, or its last lines: of the first log that has any."""
    for path in logs:
        if not path.is_file():
            continue
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            lines = [line.strip() for line in file.read().splitlines() if line.strip()]
        errors = [line for line in lines[-40:] if PYTHON_ERROR.match(line)]
        if chosen := errors[-1:] or lines[-LAST_LINES:]:
            return " | ".join(_shown(line) for line in chosen)
    return ""


def _first_hit(path: Path, signatures: dict[bytes, Signature]) -> _Hit | None:
    """The earliest primary text of one log, else its earliest other one."""
    pattern = re.compile(b"|".join(re.escape(needle) for needle in signatures))
    secondary = None
    for start, block in _blocks(path):
        for match in pattern.finditer(block):
            hit = _Hit(signatures[match[0]].primary, start + match.start(), path, signatures[match[0]])
            if hit.primary:
                return hit
            secondary = secondary or hit
    return secondary


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        start, kept = 0, b""
        while new := file.read(BLOCK):
            yield start - len(kept), kept + new
            start += len(new)
            kept = (kept + new)[-OVERLAP:]


def _line_at(path: Path, offset: int) -> tuple[int, str]:
    """The number (from 1) and the text of the line that holds this byte."""
    number = 1
    with path.open("rb") as file:
        while (left := offset - file.tell()) > 0:
            number += file.read(min(BLOCK, left)).count(b"\n")
        file.seek(max(0, offset - LONGEST_LINE))
        around = file.read(2 * LONGEST_LINE + 1)
    middle = offset - max(0, offset - LONGEST_LINE)
    while around[middle : middle + 1] == b"\n":  # a text that begins with the end of the line before
        middle += 1
        number += 1
    before = around[:middle].rpartition(b"\n")[2]
    return number, _shown(before + around[middle:].partition(b"\n")[0])


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").strip()[:LONGEST_LINE]
