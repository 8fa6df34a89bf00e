"""Logs as processes leave them that write at the same time: torn, joined, with invalid numbers."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator

from llmb import LogParser, Notice, Step, StepSeries

PIECES = (b".", b"e", b"-", b",", b": ", b"/", b"\n", b"\r", b"nan", b"inf", b"1e999", b"9" * 23, b"9" * 5000)
MANY = 250
_DIGIT = re.compile(rb"\d")


def garbled(log: bytes, many: int = MANY) -> Iterator[bytes]:
    """Yield the log many times, each time garbled in another way, the same in every call."""
    dice = random.Random(1)
    for _ in range(many):
        yield _garble(log, dice)


def _garble(log: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randint(1, 6)):
        place, elsewhere = dice.randrange(len(log)), dice.randrange(len(log))
        if dice.random() < 0.6 and (digit := _DIGIT.search(log, place)):
            place = digit.start()
        piece = dice.choice((*PIECES, log[elsewhere : elsewhere + dice.randint(1, 60)]))
        log = log[:place] + piece + log[place + dice.choice((0, 0, 1, 40)) :]
    return log


def cut(log: bytes, places: Iterable[int]) -> list[bytes]:
    """Return the log in blocks, cut at these places modulo its length."""
    edges = [0, *sorted(place % (len(log) + 1) for place in places), len(log)]
    return [log[start:stop] for start, stop in itertools.pairwise(edges)]


def read(new_parser: Callable[[], LogParser], log: bytes) -> list[Step | Notice]:
    """Return all that a parser finds, after checking that its steps are valid and that small blocks give the same."""
    found, again = _feed(new_parser(), [log]), _feed(new_parser(), [log[i : i + 7] for i in range(0, len(log), 7)])
    assert repr(found) == repr(again)
    for item in found:
        if isinstance(item, Step):
            item.check()
    StepSeries().add(found)
    return found


def _feed(parser: LogParser, blocks: list[bytes]) -> list[Step | Notice]:
    return [*(item for block in blocks for item in parser.feed(block)), *parser.close()]
