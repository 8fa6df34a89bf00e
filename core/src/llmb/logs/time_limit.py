"""A time limit for code that may not return, such as a regular expression of a plugin that backtracks."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

REPEAT_S = 1.0
"""Seconds after which the exception is raised again, if the code has caught it."""


class TooSlowError(Exception):
    """The code took longer than its limit."""


class _Deadline(threading.local):
    """The end of this thread's limit on the monotonic clock, and the message of the error."""

    end_s = math.inf
    message = ""


_deadline = _Deadline()


@contextlib.contextmanager
def time_limit(limit_s: float, message: str) -> Iterator[None]:
    """Raise TooSlowError in the block once it takes longer than ``limit_s``.

    The main thread is interrupted anywhere, by a signal. An alarm that the program itself has set still comes, but
    later by the time of the block. Python delivers signals to the main thread alone, so in any other thread the error
    is raised by the next `check_time`, or at the end of the block.
    """
    is_main = threading.current_thread() is threading.main_thread()
    with _alarm(limit_s, message) if is_main else _checked_deadline(limit_s, message):
        yield


def check_time() -> None:
    """Raise TooSlowError, once, if the time limit of this thread is over."""
    if time.monotonic() > _deadline.end_s:
        _deadline.end_s = math.inf
        raise TooSlowError(_deadline.message)


@contextlib.contextmanager
def _checked_deadline(limit_s: float, message: str) -> Iterator[None]:
    _deadline.end_s, _deadline.message = time.monotonic() + limit_s, message
    try:
        yield
        check_time()
    finally:
        _deadline.end_s = math.inf


@contextlib.contextmanager
def _alarm(limit_s: float, message: str) -> Iterator[None]:
    def stop(_signal: int, _frame: Any) -> None:
        raise TooSlowError(message)

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, limit_s, REPEAT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
