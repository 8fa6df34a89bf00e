"""Removal of escape sequences from logs, in blocks that end anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs.ansi_escapes import without_escapes
from llmb.logs.steps.line_parser import LineParser
from llmb.values.steps import Step


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred\x1b[0m", b"red"),
        (b"\x1b[38;2;180;60;0mbrown\x1b[39;49m", b"brown"),
        (b"\x1b[01;31m\x1b[Kfound by grep\x1b[m\x1b[K", b"found by grep"),
        (b"\x1b]0;title\x07\x1b]8;;https://host/run\x1b\\link\x1b]8;;\x1b\\", b"link"),
        (b"\x1b(B\x1b[m\x1b7\x1b=plain\x1b8", b"plain"),
        (b"bar\x1b[A\x1b[2Kbar\x1b[1Gbar", b"bar\rbar\rbar"),
        (b"\x1b[12\nnone of these \x1b]0;is\none", b"\x1b[12\nnone of these \x1b]0;is\none"),
    ],
)
def test_sequences_are_removed_and_a_move_of_the_cursor_ends_a_line(data: bytes, text: bytes) -> None:
    assert without_escapes(data) == (text, b"")


@pytest.mark.parametrize("end", [b"\x1b", b"\x1b[", b"\x1b[1;3", b"\x1b(", b"\x1b]8;;https://ho", b"\x1b]0;title\x1b"])
def test_an_unfinished_sequence_waits_for_the_next_block(end: bytes) -> None:
    assert without_escapes(b"\x1b[1mtext" + end) == (b"text", end)


class Coloured(LineParser):
    """Parser of ``step N: T s`` that also keeps the line before."""

    needles = (b"step ",)

    def read_line(self, line: bytes) -> Iterable[Step]:
        if match := re.fullmatch(rb"(?:\d: )?step (\d+): ([\d.]+) s", line):
            before = self.text_before().splitlines()[-1].decode()
            yield Step(step=int(match[1]), time_s=float(match[2]), other_values={before: 1.0})


LOG = b"".join(
    b"\x1b[2mnoise %d\x1b[0m\n\x1b]8;;x\x1b\\1: \x1b[1mst\x1b[0mep \x1b[36m%d\x1b[0m: \x1b[1;3m1.5\x1b[0m s\x1b[K\r\n"
    % (number, number)
    for number in range(4)
)


@given(places=st.lists(st.integers(min_value=0, max_value=len(LOG)), max_size=20))
def test_the_steps_of_a_coloured_log_are_the_same_however_it_is_cut(places: list[int]) -> None:
    edges = [0, *sorted(places), len(LOG)]
    parser = Coloured()
    blocks = [LOG[start:stop] for start, stop in pairwise(edges)]
    found = [item for block in blocks for item in parser.feed(block)]
    assert [*found, *parser.close()] == [
        Step(step=number, time_s=1.5, other_values={f"noise {number}": 1.0}) for number in range(4)
    ]
