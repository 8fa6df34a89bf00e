"""Locks of files that stopped processes hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llmb.drive.stopped_followers import find_stopped_holders

HOLD = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"


def test_only_a_stopped_process_with_the_lock_is_found(tmp_path: Path) -> None:
    held, free = tmp_path / "held", tmp_path / "free"
    held.touch()
    free.touch()
    with subprocess.Popen([sys.executable, "-c", HOLD, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdin
        holder.stdout.readline()
        files = [held, free, tmp_path / "missing"]
        assert find_stopped_holders(files) == {}
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        assert find_stopped_holders(files) == {held: holder.pid}
        assert find_stopped_holders([free]) == {}
        holder.send_signal(signal.SIGCONT)
        holder.communicate(b"\n")


def test_without_runs_of_other_processes_the_locks_of_the_machine_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[Path]()
    monkeypatch.setattr(Path, "read_text", lambda file: read.append(file) or "")
    find_stopped_holders([])
    assert not read
    find_stopped_holders([Path("lock")])
    assert read == [Path("/proc/locks")]
