"""A call in a thread of its own, while this process does something else."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread

DETACH_TIMEOUT_S = 5.0
"""How long Ctrl-C waits for a submission."""


class Background:
    """A call that starts immediately, in a thread if ``threaded``.

    The thread is a daemon, so that Ctrl-C does not wait for a scheduler that does not respond.
    """

    def __init__(self, act: Callable[[], None], *, threaded: bool) -> None:
        self._act = act
        self._future: Future[None] = Future()
        if threaded:
            Thread(target=self._run, name="llmb-background", daemon=True).start()
        else:
            self._run()

    def wait(self) -> None:
        """Wait for the call to end, but not longer than a user waits after Ctrl-C. Raise nothing."""
        wait([self._future], timeout=DETACH_TIMEOUT_S)

    def result(self) -> None:
        """Wait for the call to end. Raise what it raised."""
        self._future.result()

    def _run(self) -> None:
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001  # raised by result()
            self._future.set_exception(error)
        else:
            self._future.set_result(None)
