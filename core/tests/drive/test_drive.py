"""How long a site is left alone between two looks at it."""

from __future__ import annotations

from typing import Any

import pytest

from llmb.drive.drive import drive


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


def test_each_site_is_looked_at_at_its_own_pace_whatever_changes_elsewhere() -> None:
    fast: Any = Ticks("nothing log state " * 25 + "end", (0.25, 0.25))
    slow: Any = Ticks("nothing nothing log nothing end", (2.0, 30.0))
    waited: list[float] = []
    ticks_s: list[float] = []
    tick = slow.tick
    slow.tick = lambda: ticks_s.append(sum(waited)) or tick()
    drive([slow, fast], lambda each: not each.found, waited.append, lambda: sum(waited))
    assert ticks_s == pytest.approx([0.0, 3.0, 7.5, 9.5, 12.5])
    assert max(waited[:75]) <= 0.25


def test_the_time_that_looking_at_one_site_takes_is_no_delay_for_another() -> None:
    waited: list[float] = []
    quick: Any = Ticks("nothing nothing nothing end", (1.0, 1.0))
    rare: Any = Ticks("nothing nothing end", (10.0, 10.0))
    every_round_s = 6.0
    drive([quick, rare], lambda each: not each.found, waited.append, lambda: every_round_s * len(waited))
    assert waited == pytest.approx([1.0, 1.0, 1.0, 4.0])  # rare was due after 10 s, which came with the second round
