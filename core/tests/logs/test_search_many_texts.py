"""Search for texts in blocks of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmb.logs.search_many_texts import MAX_TOGETHER, TextSearch

TEXTS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=9)


@given(data=st.text("abc\n", max_size=300), texts=TEXTS)
def test_every_byte_where_a_text_begins_is_found_unless_it_overlaps_the_one_before(data: str, texts: list[str]) -> None:
    expected = []
    for text in dict.fromkeys(texts):
        place = data.find(text)
        while place >= 0:
            expected.append(place)
            place = data.find(text, place + len(text))

    assert TextSearch(text.encode() for text in texts).find_all(data.encode()) == sorted(expected)


def test_a_search_may_begin_anywhere() -> None:
    assert TextSearch([b"ab"]).find_all(b"abab" * 10, 36) == [36, 38]


@given(data=st.text("abc\n", max_size=300), texts=TEXTS)
def test_the_first_text_is_the_earliest_and_of_those_the_longest(data: str, texts: list[str]) -> None:
    places = [(data.find(text), -len(text), text.encode()) for text in texts if text in data]
    earliest = min(places, default=None)

    for together in (1, 3, MAX_TOGETHER):
        found = TextSearch((text.encode() for text in texts), together).find_named(data.encode())
        assert next(iter(found), None) == (earliest and (earliest[0], earliest[2]))
