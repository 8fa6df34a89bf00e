"""Where the last steps of a log begin: what the log tells before them, its run superseded_until."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from llmb.logs.read_blocks import blocks_of
from llmb.values.steps import LogParser, Notice, Step

STEPS_OF_GRACE = 10
"""New steps after a text that are no sign that the run went on: a scheduler gives processes half a minute to end."""

NewParser = Callable[[], LogParser]

Number = tuple[int, int]
"""The attempt and the number of a step: they rise, but for lines that come late or are printed again."""


def find_last_steps(path: Path, new_parser: NewParser, most: int = STEPS_OF_GRACE) -> int:
    """The byte behind which no more than ``most`` new steps come; that of the first step where there are no more.

    It lies in the line of the step that is one too many, or is the first. Steps of a run before the last one do not
    count; 0 where there is no step. The log is read twice at most, or thrice where a parser tells nothing before
    the end of it.
    """
    last, told_at_end = _last_steps(path, new_parser, most + 1)
    if told_at_end:
        last, _ = _last_steps(path, lambda: _Piecewise(new_parser), most + 1)
        return _line_of(path, _Piecewise(new_parser), *last[0]) if last else 0
    return _line_of(path, new_parser(), *last[0]) if last else 0


def _last_steps(path: Path, new_parser: NewParser, count: int) -> tuple[Sequence[tuple[Number, int]], bool]:
    """The last so many new steps, each with the begin of the block that told it; and whether the log's end told all."""
    parser, last, offset = new_parser(), deque[tuple[Number, int]](maxlen=count), 0
    for block in blocks_of(path):
        _take(parser.feed(block), offset, last)
        offset += len(block)
    told_before = bool(last)
    _take(parser.close(), offset, last)
    return last, bool(last) and not told_before


def _take(items: Iterable[Step | Notice], place: int, last: deque[tuple[Number, int]]) -> None:
    for number in _numbers(items):
        if last and number[0] > last[-1][0][0]:
            last.clear()
        if not last or number > last[-1][0]:
            last.append((number, place))


def _numbers(items: Iterable[Step | Notice]) -> Iterator[Number]:
    return ((item.attempt, item.step) for item in items if isinstance(item, Step))


def _line_of(path: Path, parser: LogParser, wanted: Number, begin: int) -> int:
    """Where the line begins, in the block that begins there, with which a parser tells of a step."""
    offset = 0
    for block in blocks_of(path):
        for piece in [block] if offset < begin else block.splitlines(keepends=True):
            if any(number >= wanted for number in _numbers(parser.feed(piece))):
                return offset
            offset += len(piece)
    return offset


class _Piecewise(LogParser):
    """For logs in which no line has a number: it numbers what a fresh parser finds in each piece.

    A line that two pieces share may be lost, which is one in a whole block.
    """

    def __init__(self, new_parser: NewParser) -> None:
        self._new_parser = new_parser
        self._count = 0

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        parser = self._new_parser()
        steps = [*_numbers(parser.feed(block, source)), *_numbers(parser.close())]
        begin, self._count = self._count, self._count + len(steps)
        return [Step(step=number) for number in range(begin, self._count)]

    def close(self) -> Sequence[Step | Notice]:
        return ()
