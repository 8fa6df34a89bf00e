"""Tables on terminals of any width, and in pipes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

import llmb
from llmb.cli.views.numbers import format_number, four_digits
from llmb.cli.views.tables import Column, lay_out_table, print_table

COLUMNS = (
    Column("run", wraps=10),
    Column("step time s", right=True),
    Column("tokens/s", right=True, optional=True),
    Column("created", optional=True),
)
ROWS = [
    ("a-long-name-of-an-experiment", "126630.900", "1,969,157", ""),
    ("short", "3.5", "12", "2026-03-17"),
]


def shown(width: int | None) -> list[str]:
    return [line.plain for line in lay_out_table(COLUMNS, ROWS, width)[0]]


@given(st.integers(min_value=22, max_value=120))
def test_no_number_is_broken_and_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    assert any("126630.900" in line for line in lines)
    words = "".join(line.partition("  ")[0] for line in lines[:-1])
    assert words.endswith("a-long-name-of-an-experiment")


@pytest.mark.parametrize(
    ("width", "there", "gone"),
    [(80, ["step time s", "tokens/s", "created"], []), (42, ["tokens/s"], ["created"]), (30, ["126630.900"], ["12 "])],
)
def test_on_a_narrow_terminal_optional_columns_are_dropped_the_last_first(
    width: int, there: list[str], gone: list[str]
) -> None:
    text = "\n".join(shown(width))
    assert [each for each in there if each not in text] == []
    assert [each for each in gone if each in text] == []
    missing = [each for each in ("tokens/s", "created") if each not in text]
    note = f"columns left out: {', '.join(missing)}; use a wider terminal or a pipe"
    assert lay_out_table(COLUMNS, ROWS, width)[1] == (note if missing else "")


def test_a_column_that_does_not_fit_leaves_its_room_to_later_ones() -> None:
    columns = [Column("run"), *(Column(title, optional=True) for title in ("verdict", "cause", "MFU"))]
    rows = [("run1", "pass", "a text that is too long", "52.6")]
    assert [line.plain for line in lay_out_table(columns, rows, 20)[0]] == ["run   verdict  MFU", "run1  pass     52.6"]
    assert lay_out_table(columns, rows, 20)[1] == "columns left out: cause; use a wider terminal or a pipe"


@pytest.mark.parametrize("nothing", ["", "-"])
def test_an_empty_column_is_dropped_before_any_text_is_broken(nothing: str) -> None:
    columns, rows = (Column("what", wraps=4), Column("empty", optional=True)), [("two words", nothing)]
    assert [line.plain for line in lay_out_table(columns, rows, 12)[0]] == ["what", "two words"]
    assert lay_out_table(columns, rows, 12)[1] == ""


def test_numbers_are_aligned_on_the_right() -> None:
    _titles, first, second = shown(None)
    assert first.index("126630.900") + len("126630.900") == second.index("3.5") + len("3.5")


@pytest.mark.parametrize(
    ("value", "text"), [(9999.4, "9999"), (9999.6, "10,000"), (123456.7, "123,457"), (0.041239, "0.04124")]
)
def test_a_number_has_four_significant_digits_and_no_exponent(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(("number", "text"), [(1, "1 step"), (9999, "9999 steps"), (12_000, "12,000 steps")])
def test_a_count_has_commas_as_other_numbers(number: int, text: str) -> None:
    assert llmb.counted(number, "step") == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (1, "0"), (2, "0, 1"), (3, "0, 1 and 1 more"), (12_002, "0, 1 and 12,000 more")],
)
def test_the_first_names_of_a_list_and_the_number_of_the_others(number: int, text: str) -> None:
    assert llmb.first_names([str(name) for name in range(number)], 2) == text


@pytest.mark.parametrize(("value", "text"), [(7, "7.000"), (999.94, "999.9"), (999.97, "1000"), (1234.5, "1234")])
def test_times_in_a_column_have_the_same_digits(value: float, text: str) -> None:
    assert four_digits(value) == text


def test_a_path_is_never_broken_so_that_it_can_be_copied() -> None:
    path = "/home/me/.local/share/llmb/runs/3n4fr-llama2-tiny-cpu-fp32-1"
    lines = [line.plain for line in lay_out_table((Column(), Column(wraps=10)), [("record", path)], 40)[0]]
    assert lines == [f"record  {path}"]


def test_escape_sequences_of_a_log_do_not_reach_the_terminal() -> None:
    line_of_log = "\x1b[31mERROR\x1b[0m \x1b]0;title\x07disk full\b\x1b[2K"
    assert [line.plain for line in lay_out_table((Column(),), [(line_of_log,)])[0]] == ["ERROR disk full"]


def test_two_lines_are_one_line_in_a_table() -> None:
    assert [line.plain for line in lay_out_table((Column(),), [("one\ntwo",)])[0]] == ["one two"]


def test_piped_output_is_plain_and_complete(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    print_table((Column("state"), Column("what")), [(Text("failed", "red"), "word " * 200)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["state   what", "failed  " + ("word " * 200).strip()]


def test_a_command_in_the_last_column_is_not_broken() -> None:
    lines = lay_out_table([Column("what"), Column("how", wraps=8)], [("a", "run `llmb attach RUN`, then wait")], 16)[0]
    assert [line.plain for line in lines][1:] == ["a     run", "      `llmb attach RUN`,", "      then wait"]
