"""Times in ~/.ssh/config."""

from __future__ import annotations

import pytest

from llmb.hosts.ssh_config import seconds


@pytest.mark.parametrize(
    ("time", "total"), [("30", 30), ("90s", 90), ("1m", 60), ("1M30", 90), ("2h5m", 7500), ("1d", 86_400), ("none", 0)]
)
def test_times_are_parsed_as_in_openssh(time: str, total: int) -> None:
    assert seconds(time) == total


@pytest.mark.parametrize("time", ["", "soon", "1.5", "m", "-1", "1 m", "1y"])
def test_an_invalid_time_is_an_error(time: str) -> None:
    with pytest.raises(ValueError, match=r"invalid time .*; expected a time such as 30 or 1m"):
        seconds(time)
