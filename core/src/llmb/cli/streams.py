"""Standard output and standard error that say themselves where they cannot be written."""

from __future__ import annotations

import io
import sys
from typing import Any

BY_SIGPIPE = 141
"""The exit status that a shell gives a program that SIGPIPE ended: 128 + 13."""


class OutputLostError(Exception):
    """What was written has reached nobody; empty where the reader has gone, as ``head`` does, which is no fault.

    It is no OSError: typer and rich end the program on those that they know, each with a status of its own.
    """

    @property
    def exit_code(self) -> int:
        """That of a file that cannot be written, or of a program whose reader has gone."""
        return 2 if self.args else BY_SIGPIPE


class _Stream(io.FileIO):
    """Raises OutputLostError once; whatever comes then, as what Python flushes at its end, is dropped."""

    def __init__(self, descriptor: int, title: str) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._title = title
        self._lost = False

    def write(self, data: Any, /) -> int:
        """Write bytes (any buffer of them). Raises OutputLostError."""
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._lost = True
            raise OutputLostError from None
        except OSError as error:
            self._lost = True
            raise OutputLostError(f"{self._title} cannot be written: {error.strerror}") from None


class _Closed(io.RawIOBase):
    """In the place of a standard output that was closed when the program began, for which Python has no stream.

    Like `_Stream` it raises once.
    """

    _lost = False

    def writable(self) -> bool:
        """True: it is the write that fails."""
        return True

    def write(self, data: Any, /) -> int:
        """Raises OutputLostError."""
        if self._lost:
            return len(data)
        self._lost = True
        raise OutputLostError("standard output is closed")


def watch_streams() -> None:
    """Let a write that fails raise OutputLostError; streams that are not Python's own (a test's) stay as they are."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed()), encoding="utf-8")
    for name, title in (("stdout", "standard output"), ("stderr", "standard error")):
        stream = getattr(sys, name)
        if stream and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _watched(stream, title))


def flush_output() -> None:
    """Write what is still held back. Raises OutputLostError."""
    if sys.stdout:  # there is none where it was closed before
        sys.stdout.flush()


def _watched(stream: io.TextIOWrapper, title: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_Stream(stream.fileno(), title)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
    )
