"""Read files that may still grow, in blocks, so that memory does not depend on their size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from llmb.values.steps import LogParser, Notice, Step

BLOCK = 1 << 19  # smaller blocks cost more calls; larger ones do not fit into a CPU's cache


def blocks_of(path: Path, offset: int = 0) -> Iterator[bytes]:
    """What the file holds from an offset on; nothing where it is not there. Raises OSError where it cannot be read."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with file:
        if offset:  # a pipe cannot seek
            file.seek(offset)
        while block := file.read(BLOCK):
            yield block


def feed_file(
    parser: LogParser,
    path: Path,
    offset: int,
    take: Callable[[Iterable[Step | Notice]], None],
    source: str | None = None,
) -> int:
    """Feed a parser what a log holds from an offset on, and return the new offset.

    Called again on a file that has grown, it reads only what is new. ``source`` is the path where it is not given.
    Raises OSError where it cannot be read; a log that is not there is an error, unlike one that is empty.
    """
    path.stat()
    name = str(path) if source is None else source
    for block in blocks_of(path, offset):
        take(parser.feed(block, name))
        offset += len(block)
    return offset
