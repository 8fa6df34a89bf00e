"""Errors that a process survived, because it printed ordinary lines after them."""

from __future__ import annotations

import re
from itertools import dropwhile
from pathlib import Path
from typing import Final

from llmb.logs.ansi_escapes import PlainText
from llmb.logs.failures.exceptions import AT_THE_END, read_tail
from llmb.logs.rank_labels import split_label
from llmb.logs.read_blocks import blocks_of, read_part

BYTES_AROUND: Final = 16 << 10
"""Bytes before an error that may contain its traceback, and after it that may contain ordinary lines."""

MAX_LINE_BYTES: Final = 4096
"""Bytes of a line that the next block may continue."""

_OF_RANK = re.compile(rb"\s*\d+: |\[\d+,")
"""The beginning of a label that a launcher prints before every line of its ranks."""


def find_continuation(path: Path, offset: int, text: str) -> tuple[int, int] | None:
    """Return the bytes from which the log continues after the first and after the last error, or None.

    The errors contain ``text``, and the first one is at ``offset``. The processes survived them if each of them
    continued after its last one.
    """
    if (first := _continuation_after(path, offset)) is None:
        return None
    last = [_continuation_after(path, place) for place in _last_places(path, text.encode(), offset).values()]
    places = [each for each in last if each is not None]
    return (first, max(places)) if len(places) == len(last) else None


def _continuation_after(path: Path, offset: int) -> int | None:
    """Return the byte of the first ordinary line after the error at ``offset``, or None.

    Several ordinary lines of the same rank must follow. An exception that nothing caught, the error itself or one that
    it caused, ended the process. An error without a label before labelled lines is that of a command of the job's
    script, which then started the ranks.
    """
    start = max(0, offset - BYTES_AROUND)
    lines = read_tail(read_part(path, start, offset + BYTES_AROUND))
    label = next((line.label for line in reversed(lines) if start + line.offset <= offset), b"")
    rest = [*dropwhile(lambda line: start + line.offset + len(line.line) <= offset, lines)]
    own = [line for line in rest if line.label == label]
    ordinary = [line for line in own[1:] if line.kind == "text"]
    errors = [line for line in own if ordinary and line.offset < ordinary[0].offset]
    if len(ordinary) > AT_THE_END and not any(line.kind == "error" and line.uncaught for line in errors):
        return start + ordinary[0].offset
    of_ranks = [line for line in rest if line.kind == "text" and _OF_RANK.match(line.label)]
    return start + of_ranks[0].offset if not label and len(of_ranks) > AT_THE_END else None


def _last_places(path: Path, text: bytes, start: int) -> dict[bytes, int]:
    """Return where ``text`` is last in a log, by the label of its rank. The first one is at ``start``."""
    places: dict[bytes, int] = {}
    kept = b""
    for block in blocks_of(path, start):
        data, begin = kept + block, start - len(kept)
        plain = PlainText(data)
        for match in re.finditer(re.escape(text), plain.text):
            line = plain.text[plain.text.rfind(b"\n", 0, match.start()) + 1 : match.end()]
            places[split_label(line)[0]] = begin + plain.place_in_log(match.start())
        start, kept = start + len(block), data[data.rfind(b"\n") + 1 :][-MAX_LINE_BYTES:]
    return places
