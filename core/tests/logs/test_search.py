"""Places of needles, found by the C library where the data is large."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb.logs import search
from llmb.logs.search import places_of


@given(data=st.text("abc\n", max_size=300), needles=st.lists(st.text("ab", min_size=1, max_size=4), unique=True))
@pytest.mark.parametrize("worth_it", [0, 1 << 20], ids=["C library", "bytes.find"])
def test_every_place_is_found_in_order(worth_it: int, data: str, needles: list[str]) -> None:
    expected = sorted(match.start() for needle in needles for match in re.finditer(needle, data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "WORTH_IT", worth_it)

        assert places_of([needle.encode() for needle in needles], data.encode()) == expected


def test_the_search_begins_where_it_is_told_to() -> None:
    assert places_of([b"ab"], b"abab" * 10_000, 39_990) == list(range(39_990, 40_000, 2))


def test_bytes_after_the_data_are_not_looked_at() -> None:
    data = bytes(search.WORTH_IT) + b"needl"

    assert places_of([b"needle"], data) == []


def test_without_glibc_the_search_is_python_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_glibc_memmem", lambda: None)

    assert places_of([b"ab"], b"xx" * search.WORTH_IT + b"ab") == [2 * search.WORTH_IT]
