"""Drive the runs of all sites to their end, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from llmb.engine.driver import Driver
from llmb.values.errors import LlmbError, PluginError, SpecError, TargetError

LIVELY_S = 0.25
"""How often logs that grow are read where that costs little: what runs on this machine has better to do."""


@attrs.define(eq=False)
class _Paced:
    """A driver at its own pace: the pause between two of its ticks grows while nothing changes there."""

    driver: Driver
    pause_s: float = attrs.field(init=False)
    due_s: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.pause_s = self.driver.poll_interval_s[0]

    def tick(self) -> None:
        shortest, longest = self.driver.poll_interval_s
        if self.driver.tick():
            self.pause_s = shortest
        elif self.driver.reading:
            self.pause_s = max(shortest, LIVELY_S)
        else:
            self.pause_s = min(self.pause_s * 1.5, longest)


def drive(
    drivers: Sequence[Driver],
    done: Callable[[Driver], bool],
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Tick all sites until each is done, each at its own pace.

    ``wait`` is called with the seconds until the next one is due; when it returns, however early, that one's turn has
    come.

    What one run or site lacks does not hold up the others: in the end TargetError is raised for sites that could not
    be asked, else PluginError for a scheduler that answered wrongly, and SpecError for runs that lack a secret.
    """
    try:
        _tick_on(drivers, done, wait, clock)
    finally:
        for driver in drivers:
            driver.release()


def _tick_on(
    drivers: Sequence[Driver],
    done: Callable[[Driver], bool],
    wait: Callable[[float], None],
    clock: Callable[[], float],
) -> None:
    going = [_Paced(driver) for driver in drivers if not done(driver)]
    refused, began_s, now_s = list[LlmbError](), clock(), 0.0
    while going:
        ticked = [each for each in going if each.due_s <= now_s]
        for each in ticked:
            try:
                each.tick()
            except (TargetError, PluginError) as error:  # the runs on other targets go on
                refused.append(error)
                going.remove(each)
        going = [each for each in going if not done(each.driver)]
        now_s = max(now_s, clock() - began_s)
        for each in ticked:
            each.due_s = now_s + each.pause_s
        if going:
            next_s = min(each.due_s for each in going)
            wait(max(0.0, next_s - now_s))
            now_s = max(next_s, clock() - began_s)
    refused += [SpecError(*driver.held) for driver in drivers if driver.held]
    if refused:
        worst = max(refused, key=lambda error: error.exit_status)
        raise type(worst)(*(fault for error in refused for fault in error.faults))
