"""A deadline, and a check that the server still responds, for everything that waits on an SSH connection."""

import threading
import time
from typing import Self

from paramiko import Transport

from llmb.hosts.ssh.timeouts import RESPONSE_S, SILENCE_S


class ConnectionWatchdog:
    """Context manager that closes a connection at its deadline, or if the server stops responding.

    Closing the connection wakes every caller that waits on it, so no caller needs a deadline of its own. ``reason``
    is then the reason for closing it, and ``expired`` is True if the deadline was.
    """

    def __init__(self, transport: Transport, timeout_s: float) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s
        self._active_at = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.reason = ""
        self.expired = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._done.set()

    def report_activity(self) -> None:
        """Restart the interval of silence, because data was sent or received."""
        self._active_at = time.monotonic()

    def _watch(self) -> None:
        while not self._done.wait(max(0.0, min(self._end, self._active_at + SILENCE_S) - time.monotonic())):
            if time.monotonic() >= self._end:
                self.expired = True
                self._close(f"no response within {self._timeout_s:g} s")
            elif time.monotonic() - self._active_at >= SILENCE_S:
                if responds(self._transport):
                    self.report_activity()
                else:
                    self._close("the server stopped responding")

    def _close(self, reason: str) -> None:
        if not self._done.is_set():
            self.reason = reason
            self._transport.close()
            self._done.set()


def responds(transport: Transport) -> bool:
    """Check whether the server responds to a request within `RESPONSE_S`.

    Every server replies to a global request, even if only to reject a request that it does not know.
    """
    request = threading.Thread(target=transport.global_request, args=("keepalive@openssh.com",), daemon=True)
    request.start()
    request.join(RESPONSE_S)
    return not request.is_alive() and transport.is_active()
