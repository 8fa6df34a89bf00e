"""A program on a real pseudo-terminal, and what a user sees there."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte
from parts.deadline import DEADLINE_S
from parts.forked import start_llmb


class Screen:
    """A program and its terminal. ``lines`` is the screen without empty lines at the end, ``written`` counts bytes."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, columns: int = 80, rows: int = 24
    ) -> None:
        self.written = 0
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        environment = {**(os.environ if env is None else env), "TERM": "xterm-256color"}
        self._start(command, {name: text for name, text in environment.items() if name not in ("COLUMNS", "LINES")})

    def _start(self, command: Sequence[str], env: dict[str, str]) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            termios.tcsetwinsize(0, (self._screen.lines, self._screen.columns))
            os.execvpe(command[0], list(command), env)

    def _exit_code(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    @staticmethod
    def of_llmb(*arguments: str, env: Mapping[str, str] | None = None, columns: int = 80, rows: int = 24) -> Screen:
        """Start ``llmb`` in a fork of the server of `forked`."""
        return _ForkedScreen(arguments, env=env, columns=columns, rows=rows)

    @property
    def lines(self) -> list[str]:
        lines = [line.rstrip() for line in self._screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def unwrapped(self) -> str:
        """The text of the screen, with lines joined that the terminal broke at its edge."""
        return "".join(line if len(line) == self._screen.columns else f"{line}\n" for line in self.lines)

    @property
    def history(self) -> list[str]:
        """The lines that were scrolled away."""
        rows = self._screen.history.top
        return ["".join(row[column].data for column in range(self._screen.columns)).rstrip() for row in rows]

    def wait_for(self, condition: str | Callable[[str], object]) -> str:
        """Wait until a text is on the screen, or a condition on its text is true. Return the text of the screen."""
        holds = condition if callable(condition) else lambda text: condition in text
        end = time.monotonic() + DEADLINE_S
        while not holds(self.text):
            alive = self._read(end - time.monotonic())
            assert alive or holds(self.text), f"the program ended without {condition!r}:\n{self.text}"
            assert time.monotonic() < end, f"waited in vain for {condition!r}:\n{self.text}"
        return self.text

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, as a user who drags an edge of the window. If it becomes lower, the first lines go."""
        lost = max(0, self._screen.lines - rows)
        self._screen.resize(rows, columns)
        self._screen.cursor.y = max(0, self._screen.cursor.y - lost)  # pyte leaves it below the last line
        termios.tcsetwinsize(self._terminal, (rows, columns))

    def end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        end = time.monotonic() + DEADLINE_S
        while self._read(end - time.monotonic()):
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
        os.close(self._terminal)
        return self._exit_code()

    def _read(self, seconds: float) -> bool:
        """Show the next output. Return False if the program has closed the terminal."""
        if not select.select([self._terminal], [], [], max(0.0, seconds))[0]:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # so Linux reports the end
            data = b""
        self.written += len(data)
        self._stream.feed(data)
        return bool(data)


class _ForkedScreen(Screen):
    def _start(self, command: Sequence[str], env: dict[str, str]) -> None:
        self._terminal, slave = pty.openpty()
        termios.tcsetwinsize(slave, (self._screen.lines, self._screen.columns))
        self._process = start_llmb([os.ttyname(slave)] * 2, command, env=env, own_session=True)
        self._pid = self._process.pid
        os.close(slave)

    def _exit_code(self) -> int:
        self._process.join()
        return int(self._process.exitcode)
