"""Logs as processes that write at once leave them: torn, glued together, with figures that are none."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from llmb import LineParser, LogParser, Notice, Step, StepSeries

PIECES = (b".", b"e", b"-", b",", b": ", b"/", b"\n", b"\r", b"nan", b"inf", b"1e999", b"9" * 23, b"9" * 5000)
MANY = 250
_DIGIT = re.compile(rb"\d")


def garbled(log: bytes, many: int = MANY) -> Iterator[bytes]:
    """The log so many times, each time garbled otherwise: the same ones in every call."""
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


def read(parser: LogParser, log: bytes) -> list[Step | Notice]:
    """All that a parser finds, with the figures of every step; and the series can take it."""
    found = [*parser.feed(log), *parser.close()]
    series = StepSeries()
    series.add(found)
    assert len(list(series.steps)) == len(series.steps)
    return found


def thorough(parser: LineParser) -> LineParser:
    """The parser, made to read every line."""
    parser.glance = lambda line: None  # type: ignore[method-assign]  # for this one alone
    return parser
