"""A call in a thread of its own, while this process does something else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A call that starts immediately, in a thread if ``threaded``.

    The thread is a daemon, so that Ctrl-C does not wait for a scheduler that does not respond.
    """

    def __init__(self, act: Callable[[], T], *, threaded: bool) -> None:
        self._act = act
        self._future: Future[T] = Future()
        if threaded:
            Thread(target=self._run, name="llmb-background", daemon=True).start()
        else:
            self._run()

    def result(self) -> T:
        """Wait for the call to end. Return what it returned, or raise what it raised."""
        return self._future.result()

    def _run(self) -> None:
        try:
            self._future.set_result(self._act())
        except BaseException as error:  # noqa: BLE001  # raised by result()
            self._future.set_exception(error)
