"""Selection of one run in a log that contains several: a restarted job, or jobs that append to the same file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from llmb.logs.failures.steps_after_error import NewParser
from llmb.logs.read_blocks import blocks_of, read_part
from llmb.values.steps import LogParser, Step

_TOGETHER = 1000
"""Lines that are read together until a step is among them."""


@contextmanager
def up_to_run(path: Path, run: int, new_parser: NewParser) -> Iterator[Path]:
    """Yield a copy of a log without the runs after ``run``, which is counted from 1."""
    with TemporaryDirectory(prefix="llmb-") as folder:
        copy = Path(folder, path.name)
        with copy.open("wb") as file:
            file.writelines(_blocks_up_to(path, _find_next_run(path, run, new_parser)))
        yield copy


def _find_next_run(path: Path, run: int, new_parser: NewParser) -> int:
    """Return the byte where the first step line after a run begins, or the size of the log."""
    parser, offset, begin = new_parser(), 0, 0
    for block in blocks_of(path):
        attempts = [step.attempt for step in _steps(parser, block)]
        if attempts and max(attempts) >= run:
            return _find_first_line(path, begin, offset + len(block), run, new_parser)
        if attempts:
            begin = offset
        offset += len(block)
    return offset


def _find_first_line(path: Path, begin: int, end: int, run: int, new_parser: NewParser) -> int:
    """Return the byte where the first step line after a run begins, which is between these bytes.

    A parser returns the first steps of a run only when a later step shows that the run began. So the first line is the
    first one after the last line with a higher step.
    """
    parser, lines, offset = new_parser(), list[tuple[int, int]](), begin
    for block in _blocks_up_to(path, begin):
        parser.feed(block)
    for line in _step_lines(read_part(path, begin, end), new_parser):
        lines += ((offset, step.step) for step in _steps(new_parser(), line))
        if any(step.attempt >= run for step in _steps(parser, line)):
            break
        offset += len(line)
    first = offset
    for place, number in reversed(lines):
        if number > lines[-1][1]:
            break
        first = place
    return first


def _step_lines(data: bytes, new_parser: NewParser) -> Iterator[bytes]:
    """Yield the lines of a text, but lines without a step together, because a parser for each line is slow."""
    lines = data.splitlines(keepends=True)
    for some in (lines[place : place + _TOGETHER] for place in range(0, len(lines), _TOGETHER)):
        text = b"".join(some)
        yield from some if _steps(new_parser(), text) else [text]


def _steps(parser: LogParser, block: bytes) -> list[Step]:
    return [item for item in parser.feed(block) if isinstance(item, Step)]


def _blocks_up_to(path: Path, end: int) -> Iterator[bytes]:
    for block in blocks_of(path):
        if end <= 0:
            return
        yield block[:end]
        end -= len(block)
