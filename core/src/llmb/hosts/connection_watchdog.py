"""A deadline for what waits for a server."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from paramiko import Transport

SILENCE_S = 15.0  # after which a server is asked whether it is there, and has as long to answer


class ConnectionWatchdog:
    """Closes a connection when the time is over, or when its server answers no more.

    All that waits for the server is woken by that, so none of it needs a deadline of its own. ``told`` is the reason.
    """

    def __init__(self, transport: Transport, timeout_s: float) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s
        self._heard_at = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.told = ""

    def __enter__(self) -> ConnectionWatchdog:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._done.set()

    def heard(self) -> None:
        """Something moved."""
        self._heard_at = time.monotonic()

    def _watch(self) -> None:
        while not self._done.wait(self._pause()):
            if time.monotonic() >= self._end:
                self._give_up(f"no answer within {self._timeout_s:g} s")
            elif time.monotonic() - self._heard_at >= SILENCE_S:
                self._ask()

    def _pause(self) -> float:
        now = time.monotonic()
        return max(0.0, min(self._end - now, self._heard_at + SILENCE_S - now))

    def _ask(self) -> None:
        if answers(self._transport):
            self.heard()
        else:
            self._give_up("the server does not answer any more")

    def _give_up(self, why: str) -> None:
        if not self._done.is_set():
            self.told = why
            self._transport.close()
            self._done.set()


def answers(transport: Transport) -> bool:
    """Ask what every server answers, if only by not knowing the question; false where it is silent for `SILENCE_S`."""
    asking = threading.Thread(target=transport.global_request, args=("keepalive@openssh.com",), daemon=True)
    asking.start()
    asking.join(SILENCE_S)
    return not asking.is_alive() and transport.is_active()
