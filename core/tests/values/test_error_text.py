"""Text of errors: the name that was probably meant, and hidden passwords."""

from __future__ import annotations

import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from llmb.values.texts.error_text import format_count, format_value, hide_passwords, invalid_value
from llmb.values.texts.nearest_name import nearest_name

NAMES = ("nemo_launcher", "megatron_bridge", "MaxText", "maxtext_extra")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nemo", "nemo_launcher"),
        ("megatron", "megatron_bridge"),
        ("MAX", "MaxText"),
        ("maxtex", "MaxText"),
        ("ne", None),
        ("", None),
        ("..", None),
        ("launcher_of_mine", None),
    ],
)
def test_the_most_like_is_meant_else_the_shortest_that_begins_so(name: str, meant: str | None) -> None:
    assert nearest_name(name, NAMES) == meant


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@proxy:3128/path", "http://me:***@proxy:3128/path"),
        ("http://me:a@b@proxy and http://x:y@z", "http://me:***@proxy and http://x:***@z"),
        ("http://proxy:3128/me:x@y", "http://proxy:3128/me:x@y"),
    ],
)
def test_the_password_in_a_url_ends_at_the_last_at_sign_before_the_path(url: str, shown: str) -> None:
    assert hide_passwords(url) == shown


def test_a_count_of_five_digits_is_grouped() -> None:
    assert [format_count(number) for number in (8, 9_999, 10_000, 115_311)] == ["8", "9999", "10,000", "115,311"]


@pytest.mark.parametrize("count", [19, 20, 21, 5000])
def test_a_long_list_is_cut(count: int) -> None:
    complete = f"[{', '.join(['1'] * count)}]"
    assert format_value([1] * count) == (complete if len(complete) <= 60 else f"{complete[:57]}...")


@pytest.mark.parametrize(("count", "shown"), [(58, f'"{"x" * 58}"'), (59, f'"{"x" * 56}...'), (99, f'"{"x" * 56}...')])
def test_a_long_text_is_cut_visibly(count: int, shown: str) -> None:
    assert format_value("x" * count) == shown


def test_a_value_of_a_type_that_toml_does_not_have_is_named_with_its_type() -> None:
    values = [1, "a", True, None, [1], {}, Path("a"), Fraction(3), b"a", date(2026, 1, 2)]
    assert [invalid_value(value).removeprefix("invalid value ") for value in values] == [
        *("1", '"a"', "true", "None", "[1]", "{...}", "a (PosixPath)", "3 (Fraction)", "b'a' (bytes)", "2026-01-02")
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("image:1\u200b", r'"image:1\u200b"'),
        ("\u202egpj", r'"\u202egpj"'),
        ("a\xa0b\n", r'"a\u00a0b\n"'),
        ("\x7f\U000e0041", r'"\u007f\U000e0041"'),
        ("Größe 25 %", '"Größe 25 %"'),
    ],
)
def test_invisible_characters_of_a_value_are_escaped(value: str, shown: str) -> None:
    assert format_value(value) == shown
    assert tomllib.loads(f"value = {shown}") == {"value": value}
