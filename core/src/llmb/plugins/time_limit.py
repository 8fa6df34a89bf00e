"""A time limit for code that may not return, such as a regular expression of a plugin that backtracks."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

REPEAT_S = 1.0
"""Seconds after which the exception is raised again, if the code has caught it."""


class TooSlowError(Exception):
    """The code took longer than its limit."""


@contextlib.contextmanager
def time_limit(limit_s: float, message: str) -> Iterator[None]:
    """Raise TooSlowError in the block once it takes longer than ``limit_s``.

    Only signals interrupt a regular expression, and Python delivers signals to the main thread alone. In another thread
    there is no limit. An alarm that the program itself has set still comes, but later by the time of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: Any) -> None:
        raise TooSlowError(message)

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, limit_s, REPEAT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
