"""Position of the last steps of a log that is read in blocks of any size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from llmb.logs import read_blocks
from llmb.logs.failures.steps_after_error import find_last_steps
from llmb.logs.steps.line_parser import LineParser
from llmb.values.steps import LogParser, Notice, Step


class Numbered(LineParser):
    """Parser of ``step N``."""

    needles = (b"step ",)

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        return [Step(step=int(line[5:]))]


class AtTheEnd(LineParser):
    """Parser of ``time``, a step without a number."""

    needles = (b"time",)

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0

    def read_line(self, line: bytes) -> Iterable[Step | Notice]:
        self.lines += 1
        return ()

    def close(self) -> list[Step | Notice]:
        super().close()
        return [Step(step=number) for number in range(self.lines)]


def steps(*numbers: int) -> list[bytes]:
    return [b"step %d\n" % number for number in numbers]


def line_of_last_steps(log: Path, new_parser: type[LogParser], lines: list[bytes]) -> bytes:
    """Return the line after which at most two new steps come."""
    text = b"".join(lines)
    log.write_bytes(text)
    begin = find_last_steps(log, new_parser, 2)
    return text[text.rfind(b"\n", 0, begin) + 1 :].partition(b"\n")[0]


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        ([b"begin\n", *steps(*range(9)), b"end\n"], {b"step 6"}),
        ([b"begin\n", *steps(3, 4)], {b"step 3"}),
        (steps(0, 1, 2, 3, 4, 2, 3, 4), {b"step 2"}),  # printed again
        ([*steps(*range(9)), b"begun again\n", *steps(0, 1)], {b"step 0", b"step 1"}),  # 0 may have been a late line
        ([b"begin\n"], {b"begin"}),
    ],
)
@pytest.mark.parametrize("block", [1, 10, 16, 1000])
def test_the_last_steps_are_the_same_for_all_block_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes], last: set[bytes], block: int
) -> None:
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", block)
    assert line_of_last_steps(tmp_path / "run.log", Numbered, lines) in last


@pytest.mark.parametrize(("count", "last"), [(0, b"begin"), (1, b"0 time"), (9, b"6 time")])
def test_steps_that_a_parser_returns_at_the_end_are_found(tmp_path: Path, count: int, last: bytes) -> None:
    lines = [b"begin\n", *(b"%d time\n" % number for number in range(count)), b"end\n"]
    assert line_of_last_steps(tmp_path / "run.log", AtTheEnd, lines) == last
