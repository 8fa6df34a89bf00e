"""Position of the last steps in a log. The run continued after everything that the log contains before them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from llmb.logs.read_blocks import blocks_of, read_part
from llmb.values.steps import LogParser, Notice, Step

STEPS_OF_GRACE = 10
"""New steps after a message that do not show that the run continued: schedulers give processes half a minute to end."""

_LONGEST_LINE = 64 << 10
_GROUP = 100  # lines

NewParser = Callable[[], LogParser]


@attrs.define
class NewStep:
    """A step that no earlier line has, and the first byte of the block that completed its line."""

    attempt: int
    number: int
    block: int


class LastSteps:
    """The last new steps of the last run in a log, at most ``count``."""

    def __init__(self, count: int = STEPS_OF_GRACE + 1) -> None:
        self._count = count
        self._steps: deque[NewStep] = deque(maxlen=count)

    def __bool__(self) -> bool:
        return bool(self._steps)

    def add(self, items: Iterable[Step | Notice], block: int) -> None:
        """Add what a parser returned for the block that begins at this byte, or at the end of the log.

        Steps in lines that come late or are printed again are not new.
        """
        newest = self._steps[-1] if self._steps else None
        for item in items:
            if not isinstance(item, Step):
                continue
            if newest is None or item.attempt > newest.attempt:
                self._steps.clear()
            elif item.attempt < newest.attempt or item.step <= newest.number:
                continue
            newest = NewStep(item.attempt, item.step, block)
            self._steps.append(newest)

    def find_begin(self, path: Path, new_parser: NewParser, most: int = STEPS_OF_GRACE) -> int:
        """Return a byte in the line after which at most ``most`` of these steps come, or 0 if there is no step.

        New parsers read its block again. A line may have begun in a block before. If a parser numbers its steps at the
        end of the log, the whole log is read again.
        """
        if not self._steps:
            return 0
        last = [*self._steps][-most - 1 :]
        begin = last[0].block
        block = next(blocks_of(path, begin), b"")
        if not block and not isinstance(new_parser(), _CountingParser):
            return find_last_steps(path, lambda: _CountingParser(new_parser), most)
        lines = block.splitlines(keepends=True)
        line = _find_line(lines, new_parser, sum(step.block == begin for step in last))
        return begin + sum(map(len, lines[:line])) if line else _line_begin(path, begin)

    @property
    def oldest(self) -> NewStep | None:
        """The oldest step, or None if there are fewer steps than ``count``."""
        return self._steps[0] if len(self._steps) == self._count else None


def _find_line(lines: Sequence[bytes], new_parser: NewParser, count: int) -> int:
    """Return the index of the line that completes the first of the last ``count`` steps, or 0 if there are fewer.

    A parser reads groups of lines, because a call for each line is slow. Another one reads only the group with the step
    line by line.
    """
    last, parser = LastSteps(count), new_parser()
    for group in range(0, len(lines), _GROUP):
        last.add(parser.feed(b"".join(lines[group : group + _GROUP])), group)
    if not (oldest := last.oldest):
        return 0
    parser = new_parser()
    parser.feed(b"".join(lines[: oldest.block]))
    for index in range(oldest.block, len(lines)):
        steps = [item for item in parser.feed(lines[index]) if isinstance(item, Step)]
        if any(step.attempt == oldest.attempt and step.step == oldest.number for step in steps):
            return index
    return len(lines)


def _line_begin(path: Path, offset: int) -> int:
    """Return the first byte of the line that contains this byte, as far back as the longest line reaches."""
    before = max(0, offset - _LONGEST_LINE)
    text = read_part(path, before, offset)
    end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
    if end:
        return before + end
    return offset if before else 0  # the line is longer, or the first one


def find_last_steps(path: Path, new_parser: NewParser, most: int = STEPS_OF_GRACE) -> int:
    """Return a byte in the line after which at most ``most`` new steps come, or in the line of the first step.

    Steps of a run before the last one do not count. Return 0 if there is no step.
    """
    last, parser, offset = LastSteps(most + 1), new_parser(), 0
    for block in blocks_of(path):
        last.add(parser.feed(block), offset)
        offset += len(block)
    last.add(parser.close(), offset)
    return last.find_begin(path, new_parser, most)


class _CountingParser(LogParser):
    """Parser for logs without step numbers: it counts the steps that a new parser finds in the lines of each block."""

    def __init__(self, new_parser: NewParser) -> None:
        self._new_parser = new_parser
        self._number = itertools.count()
        self._rest = b""

    def feed(self, block: bytes, source: str = "") -> Sequence[Step | Notice]:
        text = self._rest + block
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        self._rest = text[end:][-_LONGEST_LINE:]
        return self._read(text[:end], source)

    def close(self) -> Sequence[Step | Notice]:
        return self._read(self._rest)

    def _read(self, lines: bytes, source: str = "") -> Sequence[Step | Notice]:
        parser = self._new_parser()
        found = [*parser.feed(lines, source), *parser.close()]
        return [Step(step=next(self._number)) for item in found if isinstance(item, Step)]
