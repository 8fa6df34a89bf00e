"""The time after which a test stops waiting, and waiting for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")

# A busy machine may need ten times as long as an idle one, so only a test that hangs should meet this.
DEADLINE_S = 600


def wait_until(condition: Callable[[], T | Literal[False] | None], what: str = "") -> T:
    """Wait until a condition is true, and return its value."""
    end = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"waited in vain for {what or condition}"
        time.sleep(0.02)
    return found
