"""Durations as users write them."""

from __future__ import annotations

import pytest

from llmb.values.types.check_types import value_type
from llmb.values.types.durations import Duration


@pytest.mark.parametrize(
    ("written", "expected"),
    [("1h", 3600), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("1h 30m 5s", 5405), ("100h", 360_000), (45, 45)],
)
def test_a_duration_is_whole_seconds(written: object, expected: int) -> None:
    assert value_type(Duration).convert(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "",
        "h",
        "1",
        "1.5h",
        "30m1h",
        "-1h",
        "1d",
        "0s",
        "0h0m",
        0,
        -5,
        True,
        1.5,
        None,
        ["1h"],
        "1h\n2",
        5000 * "9" + "h",
    ],
)
def test_anything_else_is_rejected_with_the_expected_values(written: object) -> None:
    with pytest.raises(ValueError, match="a duration such as"):
        value_type(Duration).convert(written)
