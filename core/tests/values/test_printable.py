"""Text for a terminal: nothing in it is interpreted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb import printable_line, printable_text

PIECES = ["\x1b", "[", "]", "\x9b", "\x9d", "31m", "0;", "\x07", "\\", "P", "(", "\r", "\n", "\u202e", "a"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 東京 🙂 \tx\n", "größe 東京 🙂 \tx\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b2Kgone", "gone"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9d52;c;cm0=\x9cb", "alink b"),
        ("\x1bP1$r0m\x1b\\a\x1b_x\x1b\\b", "ab"),
        ("\x1b]0;a title without an end", "0;a title without an end"),
        ("\x1b(0lqk\x1b(B\x1bc", "lqk"),
        ("\x1b\x1b[m[2J", "[2J"),
        ("safe\u202egnp.exe\u2066\u200f", "safegnp.exe"),
        ("50 %\r60 %\r\n", "50 %\n60 %\n"),
        ("a\udcffb", "a\ufffdb"),
        ("a\0b\x7fc\x85d", "abcd"),
    ],
)
def test_control_sequences_are_removed_and_text_stays(text: str, shown: str) -> None:
    assert printable_text(text) == shown


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_no_text_can_control_a_terminal(text: str) -> None:
    shown = printable_text(text)
    assert not {each for each in shown if unicodedata.category(each) in ("Cc", "Cs")} - {"\t", "\n"}
    assert not {each for each in shown if unicodedata.bidirectional(each) in ("LRE", "RLE", "LRO", "RLO", "LRI", "RLI")}
    assert printable_text(shown) == shown


def test_a_line_stays_one_line() -> None:
    assert printable_line("first\r\nllmb: forged\u2028\x0bend") == "first llmb: forgedend"
