"""Search of one log for all signatures in one pass."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final

import attrs

from llmb.logs.ansi_escapes import PlainText, plain_text
from llmb.logs.failures.failure_evidence import as_evidence
from llmb.logs.failures.match_patterns import PatternMatcher, cause_in
from llmb.logs.processes import UNKNOWN_PROCESS, Process, expand_ranks
from llmb.logs.rank_labels import split_label
from llmb.logs.read_blocks import blocks_of, line_around, read_part
from llmb.logs.search_many_texts import MAX_TOGETHER, TextSearch
from llmb.values.failure import Signature

OVERLAP_BYTES: Final = 4096
"""Bytes of a block that are searched again with the next one, so that no signature is lost between two blocks."""

EVIDENCE_BYTES_BEFORE: Final = 200
EVIDENCE_BYTES_AFTER: Final = 400
"""Bytes of a line that are shown as evidence before and after the beginning of a signature."""

BEGINNING_BYTES: Final = 100
"""Bytes of the beginning of a line that are shown if the signature is further away than `EVIDENCE_BYTES_BEFORE`."""

PATTERN_BYTES: Final = 4096
"""Bytes after the beginning of a signature in which its pattern is searched."""

_FRAME = re.compile(rb'  File "[^"]*", line \d+')  # the line of a traceback above a line of code

_LINE_END = re.compile(rb"\r\n|\r|\n")

_WARNING = re.compile(
    rb"""(?:^|[\s\[:])
         (?: W\d{3,4}(?:\d{4})?\ | W\ (?:external|tensorflow|tsl|xla|third_party)/ | \w+\ W\ \d{4}-
           | wandb:\ | [A-Z][a-z]+Warning:\ | WARN(?:ING)?\b
           | Warning\ +Failed(?:Scheduling|Mount)\b )  # events of pods that wait
         (?!.*\b[Ii]nitialization:)""",
    re.VERBOSE,
)
"""What loggers print before a warning. An initialization that failed with a warning ends the program later."""

_OF_NCCL = b"NCCL WARN "  # what NCCL prints before an error

_RETRIED = b" thrown while requesting "
"""What huggingface_hub prints after the error of a request that it sends again. Its messages have no level."""


@attrs.frozen
class LogLine:
    """The bytes and the text of a line, and where a signature begins: ``offset`` in the log, ``start`` in the text."""

    offset: int
    raw: bytes
    text: str
    start: int


class HitKind(IntEnum):
    """Kinds of hits. The first kind that the logs contain counts.

    Warnings about other processes usually come at the end of a run, and the others at its beginning.
    """

    PRIMARY = 0
    SECONDARY = 1
    SECONDARY_IN_WARNING = 2
    PRIMARY_IN_WARNING = 3
    REPORT = 4


@attrs.frozen
class Hit:
    """A signature found in a log, and the byte where it begins. ``match`` is that of the signature's pattern.

    ``is_warning`` is True for a signature in a warning, which the program may have survived.
    """

    path: Path
    offset: int
    signature: Signature
    match: re.Match[str] | None = None
    is_warning: bool = False

    @property
    def kind(self) -> HitKind:
        """The kind of the signature, and whether it is in a warning."""
        if self.is_warning:
            return HitKind.PRIMARY_IN_WARNING if self.signature.primary else HitKind.SECONDARY_IN_WARNING
        if self.signature.report:
            return HitKind.REPORT
        return HitKind.PRIMARY if self.signature.primary else HitKind.SECONDARY

    @property
    def process(self) -> Process:
        """The process that the pattern names, with the first rank of a list of ranks."""
        return next(self.processes, UNKNOWN_PROCESS)

    @property
    def processes(self) -> Iterator[Process]:
        """The processes that the pattern names."""
        groups = self.match.groupdict() if self.match else {}
        host, ranks = groups.get("host"), groups.get("rank") or groups.get("task")
        host = None if host in ("localhost", "localhost.localdomain") else host
        if ranks:
            yield from (Process(rank, host) for rank in expand_ranks(ranks))
        elif host:
            yield Process(None, host)

    @property
    def cause(self) -> str:
        """The cause, with the detail in the line or in the lines that the pattern matches."""
        line = line_at(self.path, self.offset)
        detail = self.match.groupdict().get("detail") if self.match else None
        return self.signature.cause_with(detail) if detail else cause_in(self.signature, line.text[line.start :])


class SignatureSearch:
    """Search for ``signatures``. Of several with the same text, the last one counts."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._by_text = {each.needle.encode(): each for each in signatures}
        self._patterns = PatternMatcher()
        self._groups = tuple(
            TextSearch((text for text, each in self._by_text.items() if each.primary is primary), MAX_TOGETHER)
            for primary in (True, False)
        )

    def select(self, is_wanted: Callable[[Signature], bool]) -> SignatureSearch:
        """Return a search for some of the signatures."""
        return SignatureSearch(filter(is_wanted, self._by_text.values()))

    def find(self, path: Path, start: int = 0, *, warnings: bool = True) -> Hit | None:
        """Return the first hit of the first `HitKind` in a log, from this byte on, with or without ``warnings``.

        Primary and secondary signatures may overlap, so each kind has a search.
        """
        primary, others = self._groups
        kept: bytes = b""
        best: Hit | None = None
        for block in blocks_of(path, start):
            data, begin = kept + block, start - len(kept)
            hits_left = self._new_hits(path, primary, data, begin, len(kept), warnings=warnings)
            for hit in hits_left:
                if not hit.is_warning:
                    return _below_code(hit, hits_left, data, begin)  # which reads the hits below this one
                best = _better(best, hit)
            if best is None or best.kind > HitKind.SECONDARY:
                for hit in self._new_hits(path, others, data, begin, len(kept), warnings=warnings):
                    best = _better(best, hit)
                    if best.kind <= HitKind.SECONDARY:
                        break
            start, kept = start + len(block), data[-OVERLAP_BYTES:]
        return best

    def reports(self, path: Path, start: int) -> Iterator[Hit]:
        """Yield the messages in a log from this byte on by which a launcher names a process that ended."""
        if not self._process_search:
            return
        for block in blocks_of(path, start):
            hits = self._hits(path, self._process_search, block, start)
            yield from (hit for hit in hits if hit.process != UNKNOWN_PROCESS)
            start += len(block)

    @functools.cached_property
    def _process_search(self) -> TextSearch | None:
        texts = [text for text, each in self._by_text.items() if _names_a_process(each)]
        return TextSearch(texts, MAX_TOGETHER) if texts else None

    def is_report(self, line: bytes) -> bool:
        """Check whether a line contains a signature that is not primary."""
        return bool(self._groups[1].find_named(plain_text(line)))

    def _new_hits(
        self, path: Path, search: TextSearch, data: bytes, begin: int, searched: int, *, warnings: bool
    ) -> Iterator[Hit]:
        """Yield the hits in ``data``, except those in its first bytes, which were ``searched`` before."""
        for hit in self._hits(path, search, data, begin, searched):
            if not _is_warning(hit, data, hit.offset - begin):
                yield hit
            elif warnings:
                yield attrs.evolve(hit, is_warning=True)

    def _hits(self, path: Path, search: TextSearch, data: bytes, begin: int, searched: int = 0) -> Iterator[Hit]:
        plain = PlainText(data)
        for found, text in search.find_named(plain.text):
            if plain.place_in_log(found + len(text) - 1) < searched:
                continue
            place, signature = plain.place_in_log(found), self._by_text[text]
            match = self._match(path, signature, data, begin, place)
            if match or not signature.pattern:
                yield Hit(path, begin + place, signature, match)

    def _match(self, path: Path, signature: Signature, data: bytes, begin: int, place: int) -> re.Match[str] | None:
        """Return the match of a pattern that begins in the line at this place. Labels and times are left out.

        ``data`` is the part of the log from the byte ``begin`` on.
        """
        if not signature.pattern:
            return None
        before, after = _around(path, data, begin, place)
        first = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
        lines = [text_of(line) for line in (before[first:] + after).splitlines()]
        return self._patterns.match(signature, "\n".join(lines), len(lines[0]))


def _better(best: Hit | None, hit: Hit) -> Hit:
    """Return the hit of the first `HitKind`, of two of the same kind the earlier one."""
    return hit if best is None or hit.kind < best.kind else best


def _is_warning(hit: Hit, data: bytes, place: int) -> bool:
    """Check whether a signature at this place is in a warning, which has one line, or is secondary and survivable."""
    if hit.signature.survivable and not hit.signature.primary:
        return True
    if hit.signature.report or hit.signature.needle.startswith("\n") or (hit.match and "\n" in hit.match[0]):
        return False
    first = max(0, place - OVERLAP_BYTES)
    begin = max(first, *(data.rfind(end, first, place) + 1 for end in (b"\n", b"\r")))
    before = plain_text(data[begin:place])
    if _OF_NCCL in before:
        return False
    has_level = any(_WARNING.search(part) for part in (before[:EVIDENCE_BYTES_BEFORE], before[-EVIDENCE_BYTES_BEFORE:]))
    _, after = _around(hit.path, data, hit.offset - place, place)
    return has_level or _RETRIED in _LINE_END.split(after, 1)[0]


def _below_code(hit: Hit, later: Iterator[Hit], data: bytes, begin: int) -> Hit:
    """Return the exception below a line of code in a rank's traceback, if both have the same cause, else ``hit``."""

    def read_line(hit: Hit) -> tuple[bytes, bool]:
        """Return the label of the line, and whether the line is code: below the line of a frame."""
        line = data.rfind(b"\n", 0, hit.offset - begin) + 1
        above = data.rfind(b"\n", 0, max(0, line - 1)) + 1
        label, _ = split_label(plain_text(data[line : line + EVIDENCE_BYTES_BEFORE]))
        return label, _FRAME.search(plain_text(data[above:line])) is not None

    label, is_code = read_line(hit)
    if not is_code:
        return hit
    same_cause = (each for each in later if each.signature.cause == hit.signature.cause)
    return next((each for each in same_cause if read_line(each) == (label, False)), hit)


@functools.lru_cache(maxsize=8)
def search_signatures(signatures: tuple[Signature, ...]) -> SignatureSearch:
    """Return a search for these signatures. It is kept, because a directory of logs needs the same one for each log."""
    return SignatureSearch(signatures)


def _names_a_process(signature: Signature) -> bool:
    """Check whether a launcher reports with this signature which process ended, on which node."""
    number = "(?P<rank>" in signature.pattern or "(?P<task>" in signature.pattern
    both = number and "(?P<host>" in signature.pattern
    return not signature.primary and (both or (signature.report and signature.pattern != ""))


def _around(path: Path, data: bytes, begin: int, place: int) -> tuple[bytes, bytes]:
    """Return `EVIDENCE_BYTES_BEFORE` bytes before a place in ``data`` and `PATTERN_BYTES` bytes from there on.

    Only places near the ends of ``data`` are read from the file again, because a log may have a hit in each line.
    """
    first, end = place - EVIDENCE_BYTES_BEFORE, place + PATTERN_BYTES
    if first >= 0 and end <= len(data):
        return data[first:place], data[place:end]
    offset = begin + place
    before = read_part(path, max(0, offset - EVIDENCE_BYTES_BEFORE), offset)
    return before, read_part(path, offset, offset + PATTERN_BYTES)


@functools.lru_cache(maxsize=1024)  # the parts around neighbouring hits have most lines in common
def text_of(line: bytes) -> str:
    """Return a line as evidence without its time and label."""
    return as_evidence(split_label(plain_text(line))[1])


def line_at(path: Path, offset: int) -> LogLine:
    """Return the line at ``offset``. Of a long line, the text has the beginning and the part around that byte."""
    prefix, rest, ends = line_around(path, offset, OVERLAP_BYTES, EVIDENCE_BYTES_AFTER)
    shown = prefix if len(prefix) <= EVIDENCE_BYTES_BEFORE else prefix[:BEGINNING_BYTES].rpartition(b" ")[0] + b" ... "
    return LogLine(offset + ends, prefix + rest, as_evidence(shown + rest), len(as_evidence(shown + b"|")) - 1)


def line_number(path: Path, offset: int) -> int:
    """Return the number of the line at ``offset``, from 1. This takes long, because all lines above it are read."""
    number = 1
    with path.open("rb") as file:
        while (left := offset - file.tell()) > 0:
            number += file.read(min(1 << 20, left)).count(b"\n")
    return number
