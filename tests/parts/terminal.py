"""``llmb`` on a terminal, in a fork of the server of `forked`."""

from __future__ import annotations

import os
import pty
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from parts.forked import run_llmb_into


class Terminal:
    """A terminal of so many columns, with what was written to it. ``slave`` is its end for programs."""

    def __init__(self, columns: int = 80, rows: int = 50) -> None:
        self._size = (rows, columns)

    def __enter__(self) -> Terminal:
        self._master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, self._size)
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def _read(self) -> None:
        with suppress(OSError):  # raised once no process has the terminal open
            while part := os.read(self._master, 65536):
                self._parts.append(part)

    def __exit__(self, *_: object) -> None:
        os.close(self.slave)
        self._reader.join()
        os.close(self._master)

    def run_llmb(self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> int:
        """Run a command whose standard output and standard error are this terminal. Return its exit code."""
        return run_llmb_into([os.ttyname(self.slave)] * 2, arguments, env=env, cwd=cwd)

    @property
    def written(self) -> str:
        """The text that was written, once the block has ended."""
        return b"".join(self._parts).decode().replace("\r\n", "\n")
