"""Effects of hooks, found by an audit hook: files opened for writing, processes, connections, changed variables."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = (
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.connect"),
    *("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.link", "os.symlink"),
    *("os.putenv", "os.unsetenv"),
)
"""The audit events of Python that are effects."""

_state = threading.local()
_installed = threading.Event()


@contextmanager
def recorded_effects() -> Iterator[list[str]]:
    """Return the list of effects of this thread while the context is active."""
    if not _installed.is_set():
        sys.addaudithook(_audit)  # it stays until the process ends
        _installed.set()
    effects: list[str] = []
    _state.effects = effects
    try:
        yield effects
    finally:
        _state.effects = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    effects = getattr(_state, "effects", None)
    if effects is None or (arguments and _is_bytecode(arguments[0])):
        return
    if event == "open" and _is_write(arguments):
        effects.append(f"opened {arguments[0]!r} for writing")
    elif event in _EVENTS:
        subject = arguments[0] if arguments else ""
        effects.append(f"called {event} {_text(subject)!r}")


def _is_bytecode(path: Any) -> bool:
    """Check whether a path belongs to the bytecode that the import of a module writes."""
    text = _text(path)
    return "__pycache__" in text or bool(sys.pycache_prefix and text.startswith(sys.pycache_prefix))


def _is_write(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = (*arguments, None, None, None)[:3]
    if isinstance(path, int) or str(path) == os.devnull:  # a file that is already open
        return False
    return any(each in str(mode or "") for each in "wax+") or bool(isinstance(flags, int) and flags & _WRITES)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
