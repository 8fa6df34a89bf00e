"""Pauses between two polls of a target."""

from __future__ import annotations

import pytest

from llmb.drive.session import Pace


@pytest.mark.parametrize(
    ("ticks", "interval_s", "pauses_s"),
    [
        ("state nothing nothing state nothing", (0.1, 0.2), [0.1, 0.15, 0.2, 0.1, 0.15]),
        ("state log log nothing log", (0.05, 1.0), [0.05, 0.25, 0.25, 0.375, 0.25]),
        ("nothing nothing log nothing", (2.0, 30.0), [3.0, 4.5, 2.0, 3.0]),
    ],
)
def test_the_pause_grows_while_nothing_changes_and_a_growing_log_keeps_it_short(
    ticks: str, interval_s: tuple[float, float], pauses_s: list[float]
) -> None:
    pace = Pace(interval_s)
    found = []
    for tick in ticks.split():
        pace.next_tick(100.0, changed=tick == "state", reading=tick == "log")
        found.append(pace.due_s - 100.0)
    assert found == pytest.approx(pauses_s)
