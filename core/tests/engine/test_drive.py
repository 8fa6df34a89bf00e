"""How long a site is left alone between two looks at it."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.engine.drive import drive


class Ticks:
    """A site of which each tick finds what it is told to find, and then no more."""

    held: tuple[()] = ()
    reading = False

    def __init__(self, found: str, poll_interval_s: tuple[float, float]) -> None:
        self.found = found.split()
        self.poll_interval_s = poll_interval_s

    def tick(self) -> bool:
        found = self.found.pop(0)
        self.reading = found == "log"
        return found == "state"

    def release(self) -> None: ...


@pytest.mark.parametrize(
    ("found", "interval_s", "pauses_s"),
    [
        ("state nothing nothing state nothing", (0.1, 0.2), [0.1, 0.15, 0.2, 0.1, 0.15]),
        ("state log log nothing log", (0.05, 1.0), [0.05, 0.25, 0.25, 0.375, 0.25]),
        ("nothing nothing log nothing", (2.0, 30.0), [3.0, 4.5, 2.0, 3.0]),
    ],
)
def test_the_pause_grows_while_nothing_changes_and_a_log_alone_hurries_nobody(
    found: str, interval_s: tuple[float, float], pauses_s: list[float]
) -> None:
    site: Any = Ticks(f"{found} end", interval_s)
    waited: list[float] = []
    drive([site], lambda each: not each.found, waited.append)
    assert waited == pytest.approx(pauses_s)
