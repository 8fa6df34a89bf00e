"""Simulated processes on a simulated disk: one can be killed between any two effects, and the power can fail."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field

REAL = {name: getattr(os, name) for name in ("write", "fsync", "replace", "unlink", "rmdir", "close")}
REAL_FLOCK = fcntl.flock


class Killed(BaseException):
    """``kill -9``. Every further effect of the process raises it again."""


class LazyFuture:
    """A call that is made when its result is needed, or by `Process.run_call`."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        self._done = self._cancelled = False
        self._result: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        if not self._done and not self._cancelled:
            try:
                self._result = self._act()
            except Exception as error:  # noqa: BLE001  # as a thread keeps it for the caller
                self._error = error
            self._done = True

    def cancel(self) -> None:
        self._cancelled = not self._done

    def done(self) -> bool:
        return self._done or self._cancelled

    def exception(self) -> Exception | None:
        self.run()
        return self._error

    def result(self) -> Any:
        if self._cancelled:
            raise CancelledError
        self.run()
        if self._error:
            raise self._error
        return self._result


class LazyExecutor:
    """A thread pool without threads, so that every boundary has the same number each time."""

    def __init__(self, calls: list[LazyFuture]) -> None:
        self._calls = calls

    def submit(self, function: Callable[..., Any], *arguments: Any) -> LazyFuture:
        self._calls.append(LazyFuture(lambda: function(*arguments)))
        return self._calls[-1]

    def shutdown(self, *, cancel_futures: bool = False, **_named: Any) -> None:
        for future in self._calls:
            if cancel_futures:
                future.cancel()
            else:
                future.run()


@define(eq=False)
class Process:
    """One run of llmb. It passes a boundary before and after each effect, and is killed at boundary ``kill_at``.

    At ``interrupt_at`` the user presses Ctrl-C. At ``full_at`` the disk is full for once. ``between`` is called at each
    boundary with its number, for what other processes and users do meanwhile.
    """

    kill_at: int = 0
    interrupt_at: int = 0
    full_at: int = 0
    between: Callable[[int], None] | None = None
    boundaries: list[str] = field(factory=list)
    dead: bool = False
    locks: set[int] = field(factory=set)  # descriptors
    locks_left: int = 0  # at its end
    calls: list[LazyFuture] = field(factory=list)  # of its thread pools

    def end(self) -> None:
        """Free the locks, as the kernel does."""
        self.locks_left = len(self.locks)
        for descriptor in self.locks:
            REAL["close"](descriptor)
        self.locks.clear()

    def run_call(self) -> None:
        """Make the next call of a thread pool, as a thread does meanwhile."""
        if waiting := [call for call in self.calls if not call.done()]:
            waiting[0].run()

    def pass_boundary(self, name: str) -> None:
        if self.dead:
            raise Killed
        self.boundaries.append(name)
        if len(self.boundaries) == self.kill_at:
            self.dead = True
            raise Killed
        if len(self.boundaries) == self.interrupt_at:
            raise KeyboardInterrupt
        if len(self.boundaries) == self.full_at:
            raise OSError(28, "No space left on device")
        if self.between:
            self.between(len(self.boundaries))


@define(eq=False)
class Disk:
    """The disk of this machine. Real files, but what is not synced is lost if the power fails."""

    process: Process | None = None
    synced: dict[int, int] = field(factory=dict)  # bytes of each inode that outlive a power failure
    syncs: int = 0

    @contextmanager
    def acting(self, process: Process, home: Path) -> Iterator[None]:
        """Let everything in the block be done by this process."""
        before, home_before = self.process, os.environ.get("LLMB_HOME", "")
        self.process = process
        os.environ["LLMB_HOME"] = str(home)
        try:
            yield
        finally:
            self.process = before
            os.environ["LLMB_HOME"] = home_before

    @contextmanager
    def running(self, process: Process, home: Path) -> Iterator[None]:
        """Let everything in the block be done by this process, which ends with the block."""
        try:
            with self.acting(process, home):
                yield
        finally:
            process.end()

    def fail_power(self, home: Path, keep: float) -> None:
        """Cut every file to its synced bytes and a part of the others. Remove files of which nothing was synced."""
        for path in home.rglob("*"):
            if path.is_file() and path.name != "lock":
                size, safe = path.stat().st_size, self.synced.get(path.stat().st_ino, 0)
                if left := safe + int(keep * (size - safe)):
                    os.truncate(path, left)
                elif not keep:
                    path.unlink()

    # The functions of os that are effects

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.process:
            return int(REAL["write"](descriptor, data))
        name = _name(descriptor)
        half = len(data) // 2
        self.process.pass_boundary(f"before write {name}")
        REAL["write"](descriptor, data[:half])
        self.process.pass_boundary(f"within write {name}")
        REAL["write"](descriptor, data[half:])
        self.process.pass_boundary(f"after write {name}")
        return len(data)

    def fsync(self, descriptor: int) -> None:
        if self.process:
            self.process.pass_boundary(f"before sync {_name(descriptor)}")
            self.syncs += 1
            status = os.fstat(descriptor)
            self.synced[status.st_ino] = status.st_size
            self.process.pass_boundary(f"after sync {_name(descriptor)}")

    def replace(self, source: Any, target: Any) -> None:
        self._effect("replace", target, lambda: REAL["replace"](source, target))

    def unlink(self, path: Any, **more: Any) -> None:
        self._effect("unlink", path, lambda: REAL["unlink"](path, **more))

    def rmdir(self, path: Any, **more: Any) -> None:
        self._effect("rmdir", path, lambda: REAL["rmdir"](path, **more))

    def _effect(self, what: str, path: Any, act: Callable[[], None]) -> None:
        name = f"{what} {os.path.basename(path)}"
        if self.process:
            self.process.pass_boundary(f"before {name}")
        act()
        if self.process:
            self.process.pass_boundary(f"after {name}")

    def flock(self, descriptor: int, operation: int) -> None:
        REAL_FLOCK(descriptor, operation | fcntl.LOCK_NB)  # to wait for a process of this thread would be for ever
        if self.process:
            self.process.locks.add(descriptor)

    def close(self, descriptor: int) -> None:
        REAL["close"](descriptor)
        if self.process:
            self.process.locks.discard(descriptor)

    def executor(self, *_arguments: Any, **_named: Any) -> LazyExecutor:
        assert self.process
        return LazyExecutor(self.process.calls)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Replace what the processes use. Their clock advances in pauses only: a busy machine changes nothing."""
        patch.setattr("llmb.drive.session.time", SimpleNamespace(monotonic=lambda: 0.0))
        patch.setattr("llmb.records.create_records.ThreadPoolExecutor", self.executor)
        patch.setattr("llmb.records.create_records.wait", lambda futures: [future.run() for future in futures])
        patch.setattr("llmb.records.event_writer.FEW", 1000)  # no threads
        for name in REAL:
            patch.setattr(os, name, getattr(self, name))
        patch.setattr(fcntl, "flock", self.flock)


def _name(descriptor: int) -> str:
    return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
