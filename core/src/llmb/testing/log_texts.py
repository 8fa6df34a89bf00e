"""Texts made from a log: cut, garbled, long and repeated, to test parsers."""

import random
from collections.abc import Callable, Iterator, Sequence

import attrs

from llmb.values.steps import LogParser, Notice, Step

FILLER = (
    b"2026-01-05 10:31:{:02d} node{:03d} NCCL INFO Channel 0{}/0 : {}[{}] -> {}[{}] via P2P/read\n",
    b"[rank{}]: INFO:checkpoint: saving checkpoint shards to /lustre/run-{}/checkpoints/iter_{}\n",
    b"WARNING: this message has the usual words of a trainer: epoch, batch, tokens, seconds, loss scale {} {}\n",
)
"""Lines between steps."""


@attrs.frozen
class StepLine:
    """A line of a log that has a step, with its position."""

    start: int
    line: bytes


def read(parser: LogParser, blocks: Sequence[bytes]) -> list[Step | Notice]:
    """Return all steps and notices of a log that is given in blocks."""
    found: list[Step | Notice] = []
    for block in blocks:
        found += parser.feed(block)
    return [*found, *parser.close()]


def step_lines(parser: LogParser, log: bytes) -> list[StepLine]:
    """Return the lines with which the parser returns a step."""
    found, position = [], 0
    for line in log.splitlines(keepends=True):
        if any(isinstance(each, Step) for each in parser.feed(line)):
            found.append(StepLine(position, line))
        position += len(line)
    return found


def cut(log: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the blocks of a log that is cut at these positions."""
    ends = [*sorted(cuts), len(log)]
    return [log[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def garbled(lines: Sequence[bytes], number: int) -> Iterator[bytes]:
    """Yield damaged lines: numbers replaced by other texts, bytes replaced, lines joined. Always the same ones."""
    source = random.Random(number)  # noqa: S311  # no secret
    words = (b"nan", b"-inf", b"9" * 400, b"1e999", b"-1", b"", b"\xff\xfe", b"1.2.3", b"0x10", "\u0663".encode())
    changes: Sequence[Callable[[bytes], bytes]] = (
        lambda line: _replace_number(line, source, source.choice(words)),
        lambda line: bytes(source.randrange(256) if source.random() < 0.05 else each for each in line),
        lambda line: line[: source.randrange(len(line))] + source.choice(lines),
        lambda line: line[: source.randrange(len(line))] + b"\n",
    )
    for _ in range(number):
        yield source.choice(changes)(source.choice(lines))


def _replace_number(line: bytes, source: random.Random, word: bytes) -> bytes:
    digits = [index for index, each in enumerate(line) if chr(each).isdigit()]
    if not digits:
        return line
    start = end = source.choice(digits)
    while end < len(line) and (chr(line[end]).isdigit() or line[end] in b"."):
        end += 1
    return line[:start] + word + line[end:]


def long_lines(line: bytes, size: int) -> Iterator[bytes]:
    """Yield long lines that begin like a step again and again, but never complete one."""
    text = line.strip()
    for part in dict.fromkeys((text[:-1], text[: len(text) // 2], text[: len(text) * 3 // 4], text[:-3])):
        if part:
            yield part * (size // len(part)) + b"\n"


def with_filler(lines: Sequence[bytes], steps: int, between: int) -> bytes:
    """Return a log with so many lines that have a step, and so many other lines after each of them."""
    parts: list[bytes] = []
    for step in range(steps):
        parts.append(lines[step % len(lines)])
        for number in range(step, step + between):
            template = FILLER[number % len(FILLER)].decode()
            parts.append(template.format(*[(number * prime) % 60 for prime in (7, 11, 13, 17, 19, 23, 29)]).encode())
    return b"".join(parts)
