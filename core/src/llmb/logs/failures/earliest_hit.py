"""Hits of signatures in the order of time: the earliest one, and the scheduler's message below one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from llmb.logs.ansi_escapes import PlainText
from llmb.logs.failures.signature_search import Hit, line_at
from llmb.logs.read_blocks import read_part
from llmb.logs.timestamps import comparable, seconds_between, time_at
from llmb.values.failure import Signature

SIDE_EFFECTS: Final = 16 << 10
"""Bytes between the messages of processes that a scheduler or another process ends and its own message."""

SIMULTANEOUS_S: Final = 60
"""Seconds between these messages."""


def earliest_hit(hits: Sequence[Hit]) -> Hit:
    """Return the hit of the first `HitKind` with the earliest time, or if a log has no times, the lowest offset."""
    kind = min(hit.kind for hit in hits)
    candidates = [hit for hit in hits if hit.kind == kind]
    times = [time_at(hit.path, hit.offset) for hit in candidates] if len(candidates) > 1 else []
    known = [time for time in times if time]
    if known and len(known) == len(candidates):
        dated = zip(comparable(known), candidates, strict=True)
        return min(dated, key=lambda each: (each[0], each[1].offset))[1]
    return min(candidates, key=lambda hit: hit.offset)


def precedes(hit: Hit, other: Hit) -> bool:
    """Check whether a hit is before another one of its log, or has an earlier time than one of another log."""
    if hit.path == other.path:
        return hit.offset < other.offset
    times = [time for each in (hit, other) if (time := time_at(each.path, each.offset))]
    if len(times) < 2:
        return False
    first, second = comparable(times)
    return first < second


def ending_below(hit: Hit, endings: Iterable[Signature]) -> Hit | None:
    """Return the first of ``endings`` close below a hit, or None if the times of both lines are far apart."""
    found = _endings_between(hit, hit.offset, hit.offset + SIDE_EFFECTS, endings)
    ending = min(found, key=lambda each: each.offset, default=None)
    return ending if ending and _is_simultaneous(hit, ending) else None


def ending_above(hit: Hit, endings: Iterable[Signature]) -> Hit | None:
    """Return the first of ``endings`` close above a hit, or None if the times of both lines are far apart."""
    found = _endings_between(hit, max(0, hit.offset - SIDE_EFFECTS), hit.offset, endings)
    ending = min(found, key=lambda each: each.offset, default=None)
    return ending if ending and _is_simultaneous(ending, hit) else None


def _endings_between(hit: Hit, start: int, end: int, endings: Iterable[Signature]) -> list[Hit]:
    """Return the first hit of each of ``endings`` between two bytes of a hit's log."""
    text = PlainText(read_part(hit.path, start, end))
    found = [(place, each) for each in endings if (place := text.text.find(each.needle.encode())) >= 0]
    return [Hit(hit.path, start + text.place_in_log(place), each) for place, each in found]


def _is_simultaneous(hit: Hit, later: Hit) -> bool:
    """Check whether the times of two lines are not far apart. Lines without a time are not."""
    after_s = seconds_between(*(line_at(each.path, each.offset).raw for each in (hit, later)))
    return after_s is None or after_s <= SIMULTANEOUS_S
