"""Drive the runs of all sites to their end, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from llmb.engine.driver import Driver
from llmb.values.errors import LlmbError, PluginError, SpecError, TargetError

LIVELY_S = 0.25
"""How often logs that grow are read where that costs little: what runs on this machine has better to do."""


def drive(
    drivers: Sequence[Driver], done: Callable[[Driver], bool], wait: Callable[[float], None] = time.sleep
) -> None:
    """Tick all sites until each is done; the pause between two ticks grows while nothing changes.

    What one run or site lacks does not hold up the others: in the end TargetError is raised for sites that could not
    be asked, else PluginError for a scheduler that answered wrongly, and SpecError for runs that lack a secret.
    """
    try:
        _tick_on(drivers, done, wait)
    finally:
        for driver in drivers:
            driver.release()


def _tick_on(drivers: Sequence[Driver], done: Callable[[Driver], bool], wait: Callable[[float], None]) -> None:
    shortest, longest = _intervals(drivers)
    pause = shortest
    going, refused = list(drivers), list[LlmbError]()
    while True:
        changed = []
        for driver in [each for each in going if not done(each)]:
            try:
                changed.append(driver.tick())
            except (TargetError, PluginError) as error:  # the runs on other targets go on
                refused.append(error)
                going.remove(driver)
        if all(done(driver) for driver in going):
            break
        if any(changed):
            pause = shortest
        elif any(driver.reading for driver in going):
            pause = max(shortest, LIVELY_S)
        else:
            pause = min(pause * 1.5, longest)
        wait(pause)
    refused += [SpecError(*driver.held) for driver in drivers if driver.held]
    if refused:
        worst = max(refused, key=lambda error: error.exit_status)
        raise type(worst)(*(fault for error in refused for fault in error.faults))


def _intervals(drivers: Sequence[Driver]) -> tuple[float, float]:
    if not drivers:
        return 0.0, 0.0
    pairs = [driver.poll_interval_s for driver in drivers]
    return min(shortest for shortest, _ in pairs), min(longest for _, longest in pairs)
