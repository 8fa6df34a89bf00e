"""Numbers in the fields of an iteration line."""

from __future__ import annotations

import pytest

from llmb_megatron_bridge.iteration_line_fields import Meanings, read_fields
from llmb_megatron_bridge.log import MegatronLog


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        (b"12345.6", 12.3456),
        (b"12,345.6", 12.3456),
        (b"1,234,567", 1234.567),
        (b"345,6", None),  # a decimal comma
        (b"1234,567", None),
        (b"0,345", None),
        (b"12,34", None),
        (b"12,3456.7", None),
    ],
)
def test_a_comma_separates_thousands_or_the_number_is_skipped(text: bytes, time_s: float | None) -> None:
    known, _ = read_fields(b" elapsed time per iteration (ms): %b |" % text, Meanings())
    assert known.get("time_s") == time_s


def test_a_total_with_commas_is_no_small_total() -> None:
    record = b" iteration 10/ 10,000 | elapsed time per iteration (ms): 10.0 | number of nan iterations: 0 |\n"
    assert list(MegatronLog().feed(record)) == []


def test_the_loss_of_2019_follows_its_name_without_a_colon() -> None:
    text = b" elapsed time per iteration (ms): 310.5 | learning rate 3.0E-06 | lm loss 8.5E+00 | nsp loss 5.5E-01 |\n"

    assert read_fields(text, Meanings()) == ({"time_s": 0.3105, "loss": 8.5}, {})
