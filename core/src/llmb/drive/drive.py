"""Drive the runs of all sites to their end, tick by tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

import attrs

from llmb.drive.driver import Driver
from llmb.drive.observe import ObserverError
from llmb.values.error_text import exception_text
from llmb.values.errors import LlmbError

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
    besides: Sequence[Exception] = (),
) -> None:
    """Tick all sites until each is done, each at its own pace.

    ``wait`` is called with the seconds until the next one is due; when it returns, however early, that one's turn has
    come.

    What one run or site lacks does not hold up the others: in the end TargetError is raised for sites that could not
    be asked, else PluginError for a scheduler that answered wrongly, and SpecError for runs that lack a secret. What is
    no LlmbError is a bug, and raised before all else. Only what an observer raises ends the drive at once.
    """
    for _ in drive_rounds(drivers, done, wait, clock, besides):
        pass


def drive_rounds(
    drivers: Sequence[Driver],
    done: Callable[[Driver], bool],
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    besides: Sequence[Exception] = (),
) -> Iterator[None]:
    """Drive as `drive` does, and yield after each round of ticks."""
    try:
        faults = yield from _tick_on(drivers, done, wait, clock)
        raise_all([*besides, *faults, *(error for driver in drivers for error in driver.held)])
    except ObserverError as error:
        raise (error.__cause__ or error) from None
    finally:
        for driver in drivers:
            driver.release()


def _tick_on(
    drivers: Sequence[Driver],
    done: Callable[[Driver], bool],
    wait: Callable[[float], None],
    clock: Callable[[], float],
) -> Generator[None, None, list[Exception]]:
    going = [_Paced(driver) for driver in drivers if not done(driver)]
    faults, began_s, now_s = list[Exception](), clock(), 0.0
    while going:
        ticked = [each for each in going if each.due_s <= now_s]
        for each in ticked:
            try:
                each.tick()
            except Exception as error:  # noqa: BLE001  # a bug too is raised when the runs on other targets are done
                faults.append(error)
                going.remove(each)
                if going:  # it may be hours until they are done
                    reason = str(error) if isinstance(error, LlmbError) else exception_text(error)
                    each.driver.tell(f"{reason}; other runs go on")
        going = [each for each in going if not done(each.driver)]
        now_s = max(now_s, clock() - began_s)
        for each in ticked:
            each.due_s = now_s + each.pause_s
        yield
        if going:
            next_s = min(each.due_s for each in going)
            wait(max(0.0, next_s - now_s))
            now_s = max(next_s, clock() - began_s)
    return faults


def raise_all(errors: Sequence[Exception]) -> None:
    """A bug with its traceback, on which the others are noted; else all faults as the worst of them."""
    known = [error for error in errors if isinstance(error, LlmbError)]
    if bugs := [error for error in errors if not isinstance(error, LlmbError)]:
        for other in (*known, *bugs[1:]):
            bugs[0].add_note(f"besides: {type(other).__name__}: {other}")
        raise bugs[0]
    if known:
        worst = max(known, key=lambda error: error.exit_code)
        raise type(worst)(*(fault for error in known for fault in error.faults))
